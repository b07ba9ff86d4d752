// SPDX-License-Identifier: Apache-2.0
// What the recorder does when a file has as many channels as it may have.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/recording/writer/recorder_under_test.h"
#include "tests/support/failing_disk.h"

using namespace millrace;
using namespace millrace::recording;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t channels = FileWriter::most_channels;

// More streams than one file has channels for. All end within one commit.
struct ManyStreams : RecorderUnderTest {
  ManyStreams() : RecorderUnderTest(1024) {
    start();
    for (std::uint64_t number = 1; number <= channels + 1; ++number) {
      StreamPen stream = open(number);
      stream.close({.complete = true});
      REQUIRE(stream.finish());
    }
  }

  // How many streams have an end.
  std::size_t ends() const {
    std::size_t count = 0;
    for (const auto& [number, slices] : read())
      for (const KeptSlice& slice : slices) count += slice.closing ? 1 : 0;
    return count;
  }

  test::FailingDisk disk;
};

}  // namespace

TEST_CASE_METHOD(ManyStreams, "a file that has no channel for a stream is sealed") {
  commit();
  CHECK(files().size() == 2);
  CHECK(is_sealed(1));
  CHECK(ends() == channels + 1);
  CHECK(stats.streams.value() == 0);
}

TEST_CASE_METHOD(ManyStreams,
                 "if its last write fails, the streams in it are ended in the next file") {
  disk.sync = EIO;
  writer.hand_over();
  pool.filled().drain(taken);
  for (Page* const page : taken) recorder->take(*page, now);
  recorder->work(now);
  disk.sync = 0;
  for (int i = 0; i < 4; ++i) pass(10s);
  // The number of ends that are kept is limited.
  CHECK(stats.streams.value() == 0);
  CHECK(stats.dropped[DropReason::io_error].value() >= channels);
  std::size_t again = 0;
  for (const auto& [number, slices] : read())
    for (const KeptSlice& slice : slices) again += slice.closing && slice.lost ? 1 : 0;
  CHECK(again >= Recorder::most_unwritten_ends);
}
