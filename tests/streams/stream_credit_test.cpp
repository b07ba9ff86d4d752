// SPDX-License-Identifier: Apache-2.0
// The credit of a stream, for protocols with credit.
#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"

using namespace millrace;
using test::at;
using test::LiveStream;
using test::tens;

TEST_CASE("credit is the rest of the limit, and 0 while more than half of the limit is held") {
  LiveStream live(tens, 200);
  CHECK(live.stream.credit() == 200);
  live.send(100);
  CHECK(live.stream.credit() == 100);
  live.send(1);
  CHECK(live.stream.credit() == 0);
  CHECK(live.client.credits_available == 0);
}

TEST_CASE("the client's output is notified once when credit is available again") {
  LiveStream live(tens, 200);
  live.send(150);
  live.take_and_answer(4);
  CHECK(live.client.credits_available == 0);
  live.take_and_answer(1);
  CHECK(live.client.credits_available == 1);
  CHECK(live.stream.credit() == 100);
  live.take_and_answer(3);
  CHECK(live.client.credits_available == 1);
  CHECK(live.stream.credit() == 130);
}

TEST_CASE("while blocks are scarce, credit is half of the limit when all rows are in a batch") {
  LiveStream live(tens, 200);
  live.pool.allow(0);
  live.send(25);
  CHECK(live.stream.credit() == 0);
  live.take(2);
  CHECK(live.client.credits_available == 1);
  CHECK(live.stream.credit() == 100);
}

TEST_CASE("a stream has credit for its next row, even if kept context fills the limit") {
  LiveStream live({.size = 10, .left = 90}, 100);
  live.send(100);
  CHECK(live.stream.credit() == 0);
  live.take_and_answer(10);
  CHECK(live.stream.credit() == 10);
  CHECK(live.client.credits_available == 1);
}

TEST_CASE("with shed_after credit is the whole rest of the limit") {
  LiveStream live(StreamSettings{.id = StreamId{5},
                                 .type = {},
                                 .format = format_of(SampleFormat::s16le, {}),
                                 .chunk = {.spec = tens},
                                 .frames_limit = 200,
                                 .shed_after = std::chrono::milliseconds(160),
                                 .opened = at(0)});
  live.send(150);
  CHECK(live.stream.credit() == 50);
}

TEST_CASE("credit counts frames of the client, whatever their size in bytes") {
  LiveStream live(
      StreamSettings{.id = StreamId{5},
                     .type = {.element = Element::f32, .values = 3, .rate = 12.5, .features = true},
                     .format = {.format = SampleFormat::f16le, .values = 3, .rate = 12.5},
                     .chunk = {.spec = tens},
                     .frames_limit = 200,
                     .opened = at(0)});
  live.stream.frames(test::bytes_of(std::vector<std::uint16_t>(3 * 4)), live.now);
  CHECK(live.stream.credit() == 196);
}

TEST_CASE("a stream that accepts no more input has no credit") {
  LiveStream live(tens, 200);
  live.stream.end(at(0));
  CHECK(live.stream.credit() == 0);
}

TEST_CASE("a client that continues to send while its stream is paused causes an overrun") {
  LiveStream live(tens, 200);
  live.send(80);  // as many rows as may be ready
  for (int i = 0; i < 511; ++i) live.stream.flush({}, at(0));
  CHECK_FALSE(live.stream.overrun());
  live.stream.flush({}, at(0));
  CHECK(live.stream.overrun());
}
