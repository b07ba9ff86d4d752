// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "commands/datasets/verify_streams.h"
#include "tests/commands/run_command.h"
#include "tests/support/audio_files.h"
#include "tests/support/bytes.h"
#include "tests/support/memory_catalog.h"
#include "tests/support/temporary_directory.h"

namespace millrace {
namespace {

using test::CommandOutput;
using test::run_command;

CommandOutput run_index(std::vector<std::string> arguments, bool terminal = false) {
  arguments.insert(arguments.begin(), "index");
  return run_command(add_index_command, arguments, terminal);
}

// A folder with an hour of audio in two files.
struct Hour {
  Hour() {
    write_audio(folder / "a.wav", std::vector<std::int16_t>(1800 * 100), {.rate = 100});
    write_audio(folder / "b.wav", std::vector<float>(1800 * 100, 0.5f),
                {.format = SF_FORMAT_WAV | SF_FORMAT_FLOAT, .rate = 100});
  }
  TemporaryDirectory folder;
};

}  // namespace

TEST_CASE("index prints streams, hours, rate, channels and digest") {
  const Hour hour;
  const CommandOutput output = run_index({hour.folder.path()});
  CHECK(output.exit_code == 0);
  CHECK(output.err.empty());
  CHECK_THAT(output.out, Catch::StartsWith("streams   2\nhours     1.00\nrate      100\n"
                                           "channels  1\ndigest    "));
  CHECK(std::filesystem::exists(hour.folder / ".millrace/index"));
  CHECK(run_index({hour.folder.path()}).out == output.out);
}

TEST_CASE("index converts files to a rate and channels") {
  const TemporaryDirectory folder;
  write_audio(folder / "a.wav", std::vector<std::int16_t>(8000 * 360), {.rate = 8000});
  write_audio(folder / "b.wav", std::vector<std::int16_t>(2 * 48'000 * 360),
              {.rate = 48'000, .channels = 2});
  CHECK_THAT(run_index({folder.path()}).err, Catch::Contains("set convert = true"));
  const std::string out = run_index({folder.path(), "--rate", "16000", "--channels", "1"}).out;
  CHECK_THAT(out, Catch::StartsWith("2 of 2 files are converted to 16000 Hz and 1 channel: ") &&
                      Catch::Contains("\nhours     0.20\nrate      16000\nchannels  1\n"));
}

TEST_CASE("index shows a bar on a terminal and removes it") {
  const Hour hour;
  CHECK_THAT(run_index({hour.folder.path()}, true).err,
             Catch::StartsWith("\rreading [") && Catch::EndsWith("\r\x1b[K"));
  CHECK_THAT(run_index({hour.folder.path(), "--verify"}, true).err,
             Catch::StartsWith("\rverifying [" + std::string(30, ' ') + "] 0 of 2") &&
                 Catch::EndsWith("\r\x1b[K"));
  CHECK(run_index({hour.folder.path(), "--verify"}).err.empty());
}

TEST_CASE("index --verify names the files that are not good") {
  const Hour hour;
  CHECK_THAT(run_index({hour.folder.path(), "--verify"}).out,
             Catch::EndsWith("all streams are good\n"));
  std::vector<float> values(1000, 0.5f);
  values.back() = std::numeric_limits<float>::quiet_NaN();
  write_audio(hour.folder / "c.wav", values,
              {.format = SF_FORMAT_WAV | SF_FORMAT_FLOAT, .rate = 100});
  std::filesystem::resize_file(hour.folder / "a.wav", 1044);
  const CommandOutput output = run_index({hour.folder.path(), "--verify"});
  CHECK(output.exit_code == 1);
  CHECK_THAT(output.out,
             Catch::EndsWith(hour.folder / "a.wav" + ": ends after 500 of 180000 frames\n" +
                             hour.folder / "c.wav" + ": has values that are not finite\n" +
                             "2 streams of 3 are not good\n"));
}

TEST_CASE("index --verify finds values that are not finite in any catalog") {
  test::MemoryCatalog catalog{FrameType{.element = Element::f32}};
  catalog.add({.frames = test::bytes_of<float>({1, std::numeric_limits<float>::infinity()})});
  const auto bad = verify_streams(catalog, [](std::uint64_t) {});
  REQUIRE(bad.size() == 1);
  CHECK(bad.front().message == "a value of frame 1 is NaN or infinite");
}

TEST_CASE("an exception of a reader on another thread is thrown by the verification") {
  test::MemoryCatalog catalog{FrameType{}};
  for (int i = 0; i < 100; ++i) catalog.add_numbered(10);
  const auto own = std::this_thread::get_id();
  const bool alone = std::thread::hardware_concurrency() < 2;
  std::atomic<bool> failed = false;
  catalog.on_open = [&](std::uint64_t) -> Result<void, training::ReadError> {
    if (std::this_thread::get_id() == own && !alone) {
      failed.wait(false);
      return {};
    }
    failed = true;
    failed.notify_all();
    throw std::runtime_error("the disk failed");
  };
  CHECK_THROWS_WITH(verify_streams(catalog, [](std::uint64_t) {}), "the disk failed");
}

TEST_CASE("index refuses a path without streams in one line") {
  const CommandOutput output = run_index({"/absent"});
  CHECK(output.exit_code == 1);
  CHECK(output.out.empty());
  CHECK(output.err == "millrace index: /absent: no such file or folder\n");
}

}  // namespace millrace
