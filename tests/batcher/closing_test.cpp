// SPDX-License-Identifier: Apache-2.0
// When a batch closes, and with which trigger.
#include "batcher/batcher.h"

#include <catch2/catch.hpp>

#include "tests/batcher/lane_fixture.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("a batch closes as full when it has the maximum number of rows") {
  BatcherUnderTest lane(rule_of(4, 2, 10ms));
  lane.open("ABC");
  lane.row('A', 0ms);
  CHECK(lane.trigger(1ms) == std::nullopt);
  lane.row('B', 1ms);
  CHECK(lane.trigger(1ms) == Trigger::full);
  CHECK(lane.close(1ms) == "A0 B0 |");
  CHECK(lane.batch.trigger == Trigger::full);
  CHECK(lane.batch.closed == t0 + 1ms);
  CHECK(lane.trigger(1ms) == std::nullopt);
}

TEST_CASE("a batch closes as complete when every open stream is in it") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("AB");
  lane.row('A', 0ms);
  CHECK(lane.trigger(0ms) == std::nullopt);
  lane.row('B', 0ms);
  CHECK(lane.trigger(0ms) == Trigger::complete);
  CHECK(lane.close(0ms) == "A0 B0 |");
}

TEST_CASE("a marker row makes a batch complete as a row with frames does") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("AB");
  lane.row('A', 0ms);
  lane.mark('B', 0ms);
  CHECK(lane.trigger(0ms) == Trigger::complete);
  CHECK(lane.close(0ms) == "A0 | B0");
}

TEST_CASE("a batch does not wait for a stream whose END row was taken") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("AB");
  lane.row('A', 0ms, last_and_end);
  lane.row('B', 0ms);
  CHECK(lane.close(0ms) == "A0 B0 |");
  lane.row('B', 1ms);
  CHECK(lane.trigger(1ms) == Trigger::complete);
}

TEST_CASE("a batch waits for a stream that has opened") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("A");
  lane.row('A', 0ms);
  CHECK(lane.trigger(0ms) == Trigger::complete);
  lane.open("B");
  CHECK(lane.trigger(0ms) == std::nullopt);
}

TEST_CASE("a batch does not wait for a stream that was removed") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("AB");
  lane.row('A', 0ms);
  CHECK(lane.batcher.remove(lane.slot('B')).empty());
  CHECK(lane.trigger(0ms) == Trigger::complete);
}

TEST_CASE("a batch closes when its oldest row has been ready for max_wait, not earlier") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("ABC");
  lane.row('B', 3ms);
  lane.row('A', 5ms);
  CHECK(lane.batcher.deadline(true) == t0 + 13ms);
  CHECK(lane.trigger(13ms - 1ns) == std::nullopt);
  CHECK(lane.trigger(13ms) == Trigger::deadline);
  CHECK(lane.close(13ms) == "B0 A0 |");
  CHECK(lane.batcher.deadline(true) == Time::max());
}

TEST_CASE("a marker row has a deadline too") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("AB");
  lane.mark('A', 2ms);
  CHECK(lane.batcher.deadline(true) == t0 + 12ms);
  CHECK(lane.trigger(12ms) == Trigger::deadline);
  CHECK(lane.close(12ms) == "| A0");
}

TEST_CASE("with max_wait 0 no row ever waits") {
  BatcherUnderTest lane(rule_of(4, 4, 0ms));
  lane.open("AB");
  CHECK(lane.trigger(0ms) == std::nullopt);
  lane.row('A', 5ms);
  CHECK(lane.trigger(5ms) == Trigger::deadline);
  CHECK(lane.trigger(4ms) == Trigger::deadline);  // another thread's clock is ahead
}

TEST_CASE("a drain closes a batch only if rows wait") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("AB");
  lane.batcher.drain();
  CHECK(lane.trigger(0ms) == std::nullopt);
  lane.row('A', 0ms);
  CHECK(lane.trigger(0ms) == Trigger::drain);
  CHECK(lane.close(0ms) == "A0 |");
}

TEST_CASE("if several triggers apply, the order is full, complete, deadline, drain") {
  BatcherUnderTest lane(rule_of(2, 2, 0ms));
  lane.open("AB");
  lane.batcher.drain();
  lane.row('A', 0ms);
  CHECK(lane.trigger(0ms) == Trigger::deadline);
  lane.mark('B', 0ms);
  CHECK(lane.trigger(0ms) == Trigger::complete);
  lane.row('B', 0ms);
  CHECK(lane.close(0ms) == "A0 | B0");
  lane.row('A', 1ms);
  CHECK(lane.trigger(1ms) == Trigger::full);
}
