// SPDX-License-Identifier: Apache-2.0
// The pace at which input is read.
#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

// A stream of Opus that never holds too many frames.
struct OpusStream : LiveStream {
  OpusStream()
      : LiveStream(StreamSettings{.id = StreamId{5},
                                  .type = {},
                                  .format = {.format = SampleFormat::opus, .rate = 48'000},
                                  .chunk = {.spec = {.size = 16'000}},
                                  .frames_limit = 10'000'000,
                                  .opened = at(0)}) {
    stream.tick(now);
  }
  void packets(int count) {
    for (; count > 0; --count)
      stream.frames(std::vector{std::byte{0xfb}, std::byte{6}}, now);  // 120 ms of silence
  }
};

}  // namespace

TEST_CASE_METHOD(OpusStream, "Opus is read 30 times as fast as real time, after 60 s at any pace") {
  packets(499);
  CHECK_FALSE(stream.paused());
  packets(1);
  CHECK(stream.paused());
  after(999ms);
  CHECK(stream.paused());
  after(1ms);
  CHECK_FALSE(stream.paused());
  CHECK(said() == Said{"resume"});
  packets(249);
  CHECK_FALSE(stream.paused());
  packets(1);
  CHECK(stream.paused());
}

TEST_CASE_METHOD(OpusStream, "a client that sends Opus 30 times as fast as real time never waits") {
  packets(499);
  for (int i = 0; i < 1000; ++i) {
    after(4ms);
    packets(1);
    CHECK_FALSE(stream.paused());
  }
}

TEST_CASE_METHOD(OpusStream, "the credit of a stream of Opus is what may be read at any pace") {
  CHECK(stream.credit() == 500);
  packets(400);
  CHECK(stream.credit() == 100);
  packets(100);
  CHECK(stream.credit() == 0);
  CHECK(client.credits_available == 0);
  after(1s);
  CHECK(stream.credit() == 250);
  CHECK(client.credits_available == 1);
}

TEST_CASE_METHOD(OpusStream, "gaps of a client of Opus do not count as input") {
  stream.gap(1'000'000, now);
  CHECK_FALSE(stream.paused());
  CHECK(stream.credit() == 500);
}

TEST_CASE("with a limit, a stream is read twice as fast as real time, after 10 s at any pace") {
  LiveStream d({.size = 1600}, 10'000'000);
  d.pace = RateRule(2, 10);
  for (int i = 0; i < 99; ++i) d.send(1600);  // 100 ms
  CHECK_FALSE(d.stream.paused());
  CHECK(d.stream.credit() == 1600);
  d.send(1600);
  CHECK(d.stream.paused());
  CHECK(d.stream.credit() == 0);
  d.after(2499ms);
  CHECK(d.stream.paused());
  d.after(1ms);
  CHECK_FALSE(d.stream.paused());
  CHECK(d.stream.credit() == 80'000);
  for (int i = 0; i < 1000; ++i) {
    d.after(50ms);
    d.send(1600);
    CHECK_FALSE(d.stream.paused());
  }
}

TEST_CASE("without a limit, a stream that is not Opus is read at any pace") {
  LiveStream d({.size = 1600}, 100'000'000);
  for (int i = 0; i < 10'000; ++i) d.send(1600);
  CHECK_FALSE(d.stream.paused());
}
