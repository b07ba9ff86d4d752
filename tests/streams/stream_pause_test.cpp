// SPDX-License-Identifier: Apache-2.0
// The extra frames that a stream may hold after its client was paused for long.
#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

// A stream that may hold a second, and half a second more after long pauses. No row is done.
struct PausedStream : LiveStream {
  PausedStream()
      : LiveStream(StreamSettings{.id = StreamId{5},
                                  .type = {},
                                  .format = format_of(SampleFormat::s16le, {}),
                                  .chunk = {.spec = tens},
                                  .frames_limit = 16'000,
                                  .pause_frames = 8'000,
                                  .opened = at(0)}) {
    send(16'000);
  }
};

}  // namespace

TEST_CASE_METHOD(PausedStream, "a paused client is read at twice real time") {
  CHECK(stream.paused());
  after(249ms);
  CHECK(stream.paused());
  after(1ms);
  CHECK_FALSE(stream.paused());
  CHECK(said() == Said{"resume"});
  send(7'999);
  CHECK_FALSE(stream.paused());
  send(1);
  CHECK(stream.paused());
}

TEST_CASE_METHOD(PausedStream,
                 "the frames that a paused stream may hold are limited, however long it waits") {
  after(1h);
  send(8'000);
  CHECK(stream.paused());
  after(1h);
  CHECK(stream.paused());
  CHECK(stream.held_bytes() == 2 * 24'000);
}

TEST_CASE_METHOD(PausedStream,
                 "when at most half of the limit is held, the extra frames for pauses are reset") {
  after(1h);
  take_and_answer(8);
  for (int i = 0; i < 99; ++i) take_and_answer(8);
  CHECK(stream.held_bytes() == 2 * 8'000);
  send(8'000);
  CHECK(stream.paused());
}

TEST_CASE_METHOD(PausedStream, "credit does not grow with pauses") {
  after(1h);
  CHECK(stream.credit() == 0);
}

TEST_CASE_METHOD(PausedStream, "while memory is short, a paused client is not read") {
  pool.allow(0);
  after(1h);
  CHECK(stream.paused());
}
