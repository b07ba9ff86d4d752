// SPDX-License-Identifier: Apache-2.0
// What a stream says of its room, for doors that give credit.
#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"

using namespace millrace;
using test::at;
using test::LiveStream;
using test::tens;

TEST_CASE("there is room for what is not held, until more than half of it is") {
  LiveStream live(tens, 200);
  CHECK(live.stream.room() == 200);
  live.send(100);
  CHECK(live.stream.room() == 100);
  live.send(1);
  CHECK(live.stream.room() == 0);
  CHECK(live.client.had_room == 0);
}

TEST_CASE("the client's end hears once that there is room again") {
  LiveStream live(tens, 200);
  live.send(150);
  live.take_and_answer(4);
  CHECK(live.client.had_room == 0);
  live.take_and_answer(1);
  CHECK(live.client.had_room == 1);
  CHECK(live.stream.room() == 100);
  live.take_and_answer(3);
  CHECK(live.client.had_room == 1);
  CHECK(live.stream.room() == 130);
}

TEST_CASE("while blocks are scarce there is room for half, once all rows are in a batch") {
  LiveStream live(tens, 200);
  live.pool.allow(0);
  live.send(25);
  CHECK(live.stream.room() == 0);
  live.take(2);
  CHECK(live.client.had_room == 1);
  CHECK(live.stream.room() == 100);
}

TEST_CASE("context that is kept does not keep a stream from its next row") {
  LiveStream live({.size = 10, .left = 90}, 100);
  live.send(100);
  CHECK(live.stream.room() == 0);
  live.take_and_answer(10);
  CHECK(live.stream.room() == 10);
  CHECK(live.client.had_room == 1);
}

TEST_CASE("with shed_after there is room for all that is not held") {
  LiveStream live(StreamSettings{.id = StreamId{5},
                                 .type = {},
                                 .format = SampleFormat::s16le,
                                 .spec = tens,
                                 .frames_limit = 200,
                                 .shed_after = std::chrono::milliseconds(160),
                                 .opened = at(0)});
  live.send(150);
  CHECK(live.stream.room() == 50);
}

TEST_CASE("room is in frames of the client, whatever one of them is in bytes") {
  LiveStream live(
      StreamSettings{.id = StreamId{5},
                     .type = {.element = Element::f32, .values = 3, .rate = 12.5, .features = true},
                     .format = SampleFormat::f16le,
                     .spec = tens,
                     .frames_limit = 200,
                     .opened = at(0)});
  live.stream.frames(test::bytes_of(std::vector<std::uint16_t>(3 * 4)), live.now);
  CHECK(live.stream.room() == 196);
}

TEST_CASE("a stream that takes nothing more has no room") {
  LiveStream live(tens, 200);
  live.stream.end(at(0));
  CHECK(live.stream.room() == 0);
}

TEST_CASE("what only somebody brings about who does not wait his turn is overrun") {
  LiveStream live(tens, 200);
  live.send(80);  // as many rows as may be ready
  for (int i = 0; i < 511; ++i) live.stream.flush({}, at(0));
  CHECK_FALSE(live.stream.overrun());
  live.stream.flush({}, at(0));
  CHECK(live.stream.overrun());
}
