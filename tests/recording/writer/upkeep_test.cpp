// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/upkeep.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "tests/recording/writer/recorder_under_test.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

// Two streams in one file, which is sealed.
struct SealedFile : RecorderUnderTest {
  SealedFile() {
    start();
    for (const std::uint64_t number : {1, 2}) {
      StreamPen stream = open(number);
      add_frames(stream, 1, 100, now);
    }
    commit();
    recorder->finish(now);
  }

  // The upkeep after the file was sealed.
  void keep_up(const Retention& retention) {
    Upkeep upkeep(
        directory.path(), retention, [this] { return now.time_since_epoch(); }, stats, notices);
    upkeep.sealed(1);
  }
  std::vector<std::uint64_t> streams() const {
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, slices] : read()) numbers.push_back(number);
    return numbers;
  }

  const Directory reading = expect(Directory::open(directory.path(), Directory::For::reading));
  const Retention all{.keep = std::uint64_t{1} << 40, .keep_for = std::chrono::hours(1)};
};

}  // namespace

TEST_CASE_METHOD(SealedFile, "a file that was sealed is rewritten without removed streams") {
  reading.add_removed({1});
  keep_up(all);
  CHECK(streams() == std::vector<std::uint64_t>{2});
  CHECK(is_sealed(1));
  CHECK(notices.all == std::vector<std::string>{"sealed 1"});
}

TEST_CASE_METHOD(SealedFile, "a file that could not be rewritten is tried again") {
  // Lets the file be rewritten once that has failed.
  struct Repairs final : RecorderNotices {
    explicit Repairs(std::string path) : file(std::move(path)) {}
    void failed(std::string_view) override {
      std::filesystem::rename(file + ".kept", file);
      repaired.set_value();
    }
    const std::string file;
    std::promise<void> repaired;
  } repairs(directory / Directory::file_name(1));
  std::filesystem::rename(repairs.file, repairs.file + ".kept");
  std::ofstream(repairs.file) << "This is no segment file, but text.\n";
  reading.add_removed({1});
  {
    Upkeep upkeep(
        directory.path(), all, [this] { return now.time_since_epoch(); }, stats, repairs);
    upkeep.sealed(1);
    repairs.repaired.get_future().wait();
    upkeep.sealed(2);
  }
  CHECK(streams() == std::vector<std::uint64_t>{2});
}

TEST_CASE_METHOD(SealedFile, "a file without removed streams stays as it is") {
  reading.add_removed({5});
  const auto before = std::filesystem::last_write_time(directory / Directory::file_name(1));
  keep_up(all);
  CHECK(streams() == std::vector<std::uint64_t>{1, 2});
  CHECK(std::filesystem::last_write_time(directory / Directory::file_name(1)) == before);
}

TEST_CASE_METHOD(SealedFile, "the oldest files are deleted, and counted") {
  for (int i = 0; i < 3; ++i) {
    recorder.reset();
    start();
    recorder->finish(now);
  }
  keep_up({.keep = 1, .keep_for = std::chrono::hours(1'000'000)});
  CHECK(files() == std::vector<FileNumber>{4});
  CHECK(stats.segments[SegmentEvent::deleted].value() == 3);
}
