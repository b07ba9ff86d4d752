// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/upkeep.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "tests/recording/writer/recorder_under_test.h"
#include "tests/support/failing_disk.h"

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
    Upkeep upkeep(directory.path(), Upkeep::Beside::recorder, retention, wall, stats, notices);
    upkeep.sealed(1);
  }
  // The upkeep of a service that records nothing.
  void keep_up_alone(const Retention& retention) {
    Upkeep upkeep(directory.path(), Upkeep::Beside::nothing, retention, wall, stats, notices);
  }
  std::vector<std::uint64_t> streams() const {
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, slices] : read()) numbers.push_back(number);
    return numbers;
  }

  // Half an hour after the file was written.
  const std::function<Duration()> wall = [this] {
    struct stat facts {};
    ::stat(directory.path().c_str(), &facts);
    return std::chrono::seconds(facts.st_mtim.tv_sec) + std::chrono::minutes(30);
  };
  const Directory reading = expect(Directory::open(directory.path(), Directory::For::reading));
  const Retention all{.keep = std::uint64_t{1} << 40, .keep_for = std::chrono::hours(1)};
};

}  // namespace

TEST_CASE_METHOD(SealedFile, "a file that was sealed is rewritten without removed streams") {
  reading.add_removed({1});
  keep_up(all);
  CHECK(streams() == std::vector<std::uint64_t>{2});
  CHECK(is_sealed(1));
  CHECK(notices.all == std::vector<std::string>{"sealed 1", "rewritten 1"});
}

TEST_CASE_METHOD(SealedFile, "damage in a file that is rewritten is named") {
  struct Lines final : RecorderNotices {
    void failed(std::string_view why) override { all.emplace_back(why); }
    std::vector<std::string> all;
  } lines;
  const std::uint64_t chunk = expect(RecordingFile::open(reading, 1)).chunks()[0].offset;
  std::fstream(directory / Directory::file_name(1), std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(chunk + 100))
      .put('\xaa');
  reading.add_removed({1});
  {
    Upkeep upkeep(directory.path(), Upkeep::Beside::recorder, all, wall, stats, lines);
    upkeep.sealed(1);
  }
  REQUIRE(lines.all.size() == 1);
  CHECK(lines.all[0].ends_with("slices of streams 2 are lost"));
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
  std::ofstream(repairs.file) << "This is no recording file, but text.\n";
  reading.add_removed({1});
  {
    Upkeep upkeep(directory.path(), Upkeep::Beside::recorder, all, wall, stats, repairs);
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
  CHECK(stats.files[FileEvent::deleted].value() == 3);
}

TEST_CASE_METHOD(SealedFile, "while the disk is short of space, the oldest files make room once") {
  for (int i = 0; i < 3; ++i) {
    recorder.reset();
    start();
    recorder->finish(now);
  }
  Retention retention = all;
  retention.min_free = std::uint64_t{1} << 20;
  retention.spare = 4096;  // the first file is larger than another one
  test::FailingDisk disk;
  SECTION("enough is free") { disk.free_bytes = retention.min_free + retention.spare; }
  SECTION("space is short, and stays so") { disk.free_bytes = retention.min_free; }
  {
    Upkeep upkeep(directory.path(), Upkeep::Beside::recorder, retention, wall, stats, notices);
    for (const FileNumber file : {2, 3, 4}) upkeep.sealed(file);
  }
  const std::vector<FileNumber> every{1, 2, 3, 4};
  const bool is_short = disk.free_bytes == retention.min_free;
  CHECK((files() == every) == !is_short);
  CHECK(files().size() >= 2);
}

TEST_CASE_METHOD(SealedFile, "a list of removed streams that is damaged does not stop deletion") {
  std::ofstream(directory / "removed") << "17";
  recorder.reset();
  start();
  recorder->finish(now);
  notices.all.clear();
  keep_up({.keep = 1, .keep_for = std::chrono::hours(1'000'000)});
  CHECK(files() == std::vector<FileNumber>{2});
  CHECK(std::ranges::count(notices.all, "failed") > 0);
  CHECK(std::ranges::count(notices.all, "deleted 1, too old 0") == 1);
}

TEST_CASE_METHOD(SealedFile,
                 "a process that was stopped while it rewrites files stops no deletion") {
  recorder.reset();
  start();
  recorder->finish(now);
  const FileDescriptor lock = reading.lock_for_maintenance();
  reading.add_removed({1});
  keep_up({.keep = 1, .keep_for = std::chrono::hours(1'000'000)});
  CHECK(files() == std::vector<FileNumber>{2});
}

TEST_CASE_METHOD(SealedFile, "a removal of a process that was killed is completed") {
  {
    Upkeep upkeep(directory.path(), Upkeep::Beside::recorder, all, wall, stats, notices);
    reading.add_removed({1});
    upkeep.sealed(2);
  }
  CHECK(streams() == std::vector<std::uint64_t>{2});
}

TEST_CASE_METHOD(SealedFile, "a removal is completed in a file that was left unsealed") {
  recorder.reset();
  start();
  StreamPen stream = open(3);
  add_frames(stream, 1, 100, now);
  commit();
  reading.add_removed({3});
  keep_up_alone(all);  // the recorder still has the file
  CHECK_FALSE(is_sealed(2));
  recorder.reset();
  keep_up_alone(all);
  CHECK(is_sealed(2));
  CHECK(streams() == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE_METHOD(SealedFile, "a lock that cannot be opened stops no deletion") {
  recorder.reset();
  std::filesystem::remove(directory / "lock");
  std::filesystem::create_directory(directory / "lock");
  const std::string file = directory / Directory::file_name(1);
  std::filesystem::copy(file, directory / Directory::file_name(2));
  keep_up_alone({.keep = 1, .keep_for = std::chrono::hours(1'000'000)});
  CHECK(files() == std::vector<FileNumber>{2});
}

TEST_CASE_METHOD(SealedFile, "the catalog of an earlier version is deleted") {
  const std::string catalog = directory.path() + "/catalog.sqlite";
  std::ofstream(catalog) << "names of callers";
  keep_up(all);
  CHECK_FALSE(std::filesystem::exists(catalog));
  std::filesystem::remove(directory / Directory::file_name(1));
  std::ofstream(catalog) << "names of callers";
  keep_up(all);
  CHECK_FALSE(std::filesystem::exists(catalog));
}

TEST_CASE_METHOD(SealedFile, "the index of training is deleted with the files that are too old") {
  const std::string folder = directory / ".millrace";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/recordings") << "names of callers";
  std::filesystem::copy(directory / Directory::file_name(1), directory / Directory::file_name(2));
  keep_up(all);
  CHECK_FALSE(std::filesystem::is_empty(folder));
  keep_up({.keep = 1, .keep_for = std::chrono::hours(1'000'000)});
  CHECK(std::filesystem::is_empty(folder));
}

TEST_CASE_METHOD(SealedFile, "a failure that stays is reported once") {
  std::filesystem::create_directory(directory / "catalog.sqlite");
  notices.all.clear();
  keep_up(all);  // looks at the directory at least twice
  CHECK(notices.all == std::vector<std::string>{"failed"});
}

TEST_CASE_METHOD(SealedFile, "if nothing is recorded, removals are completed nevertheless") {
  recorder.reset();
  reading.add_removed({1});
  keep_up_alone(all);
  CHECK(streams() == std::vector<std::uint64_t>{2});
}

TEST_CASE_METHOD(SealedFile, "if nothing is recorded, the newest file is deleted when it is old") {
  const std::string file = directory / Directory::file_name(1);
  std::filesystem::last_write_time(file,
                                   std::filesystem::last_write_time(file) - std::chrono::hours(2));
  keep_up_alone(all);  // a process still has the lock of the writer
  CHECK(files() == std::vector<FileNumber>{1});
  recorder.reset();
  keep_up_alone(all);
  CHECK(files().empty());
  start();
  CHECK(recorder->series().next_stream() == 3);
}

TEST_CASE_METHOD(SealedFile, "a clock that is far ahead at the start deletes nothing by its age") {
  recorder.reset();
  for (const auto beside : {Upkeep::Beside::recorder, Upkeep::Beside::nothing}) {
    const auto ahead = [this] { return wall() + std::chrono::hours(9600); };
    const Upkeep upkeep(directory.path(), beside, all, ahead, stats, notices);
  }
  CHECK(files() == std::vector<FileNumber>{1});
}

TEST_CASE("without recordings, upkeep makes neither a directory nor a file") {
  const TemporaryDirectory directory;
  RecordingStats stats;
  KeptNotices notices;
  for (const std::string& path : {directory.path(), directory / "none"}) {
    const Upkeep upkeep(
        path, Upkeep::Beside::nothing, {}, [] { return Duration(); }, stats, notices);
  }
  CHECK(std::filesystem::is_empty(directory.path()));
  CHECK(notices.all.empty());
}
