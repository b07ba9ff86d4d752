// SPDX-License-Identifier: Apache-2.0
// The rows of a batch, and the slots of streams.
#include "batcher/batcher.h"

#include <catch2/catch.hpp>

#include "tests/batcher/lane_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

BatchRule stateless(std::uint32_t slots, std::uint32_t rows, Duration max_wait) {
  BatchRule rule = rule_of(slots, rows, max_wait);
  rule.stateful = false;
  return rule;
}

}  // namespace

TEST_CASE("the oldest rows are taken first, whenever they were added") {
  BatcherUnderTest lane(rule_of(8, 2, 10ms));
  lane.open("ABCD");
  lane.row('A', 4ms);
  lane.row('B', 2ms);
  lane.row('C', 3ms);
  lane.row('D', 1ms);
  CHECK(lane.close(4ms) == "D0 B0 |");
  CHECK(lane.close(4ms) == "C0 A0 |");
}

TEST_CASE("among rows of the same age, the one added first is taken first") {
  BatcherUnderTest lane(rule_of(8, 2, 10ms));
  lane.open("ABC");
  for (char name : {'C', 'A', 'B'}) lane.row(name, 1ms);
  CHECK(lane.close(1ms) == "C0 A0 |");
}

TEST_CASE("a stream has at most one row with frames in a batch") {
  BatcherUnderTest lane(rule_of(4, 4, 0ms));
  lane.open("AB");
  for (int i = 0; i < 3; ++i) lane.row('A', 0ms);
  CHECK(lane.close(0ms) == "A0 |");
  CHECK(lane.close(0ms) == "A1 |");
  CHECK(lane.close(0ms) == "A2 |");
}

TEST_CASE("a backlog of one stream does not delay another") {
  BatcherUnderTest lane(rule_of(4, 1, 10ms));
  lane.open("AB");
  for (int i = 0; i < 3; ++i) lane.row('A', 0ms);
  lane.row('B', 5ms);
  CHECK(lane.close(7ms) == "A0 |");
  CHECK(lane.close(8ms) == "B0 |");  // A1 is as old as the batch that took A0
  CHECK(lane.close(9ms) == "A1 |");
}

TEST_CASE("a batch takes no further row once its rows carry 16 MiB of messages") {
  BatcherUnderTest lane(stateless(4, 4, 10ms));
  lane.open("ABC");
  const StreamPosts posts{{.text = std::string(most_batch_posts / 2, 'm')}};
  lane.posts = &posts;
  for (char name : {'A', 'B', 'C'}) {
    lane.row(name, 1ms);
    lane.mark(name, 2ms);
  }
  CHECK(lane.close(20ms) == "A0 B0 |");
  CHECK(lane.close(20ms) == "C0 | A1");
  CHECK(lane.close(40ms) == "| B1 C1");
}

TEST_CASE("a row queued behind another waits max_wait after that one was taken") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("AB");
  lane.row('A', 0ms);
  lane.row('A', 1ms);
  CHECK(lane.close(12ms) == "A0 |");
  CHECK(lane.batcher.deadline(true) == t0 + 22ms);
}

TEST_CASE("marker rows go into the batch of the row with frames before them") {
  BatcherUnderTest lane(rule_of(4, 4, 0ms));
  lane.open("AB");
  lane.row('A', 0ms);
  lane.mark('A', 0ms);
  lane.mark('A', 0ms, last_and_end);
  lane.row('B', 0ms);
  CHECK(lane.close(0ms) == "A0 B0 | A1 A2");
}

TEST_CASE("a row with frames after a marker row goes into the next batch") {
  BatcherUnderTest lane(rule_of(4, 4, 0ms));
  lane.open("A");
  lane.row('A', 0ms);
  lane.mark('A', 0ms);
  lane.row('A', 0ms);
  lane.mark('A', 0ms);
  CHECK(lane.close(0ms) == "A0 | A1");
  CHECK(lane.close(0ms) == "A2 | A3");
}

TEST_CASE("a marker row does not overtake the row with frames before it") {
  BatcherUnderTest lane(rule_of(4, 1, 0ms));
  lane.open("AB");
  lane.row('A', 0ms);
  lane.row('B', 1ms);
  lane.mark('B', 1ms);
  CHECK(lane.close(1ms) == "A0 |");
  CHECK(lane.close(1ms) == "B0 | B1");
}

TEST_CASE("marker rows do not count against the size of a batch") {
  BatcherUnderTest lane(rule_of(4, 1, 10ms));
  lane.open("ABCD");
  lane.mark('A', 0ms);
  lane.mark('B', 0ms);
  CHECK(lane.trigger(0ms) == std::nullopt);
  lane.row('C', 0ms);
  CHECK(lane.trigger(0ms) == Trigger::full);
  CHECK(lane.close(0ms) == "C0 | A0 B0");
  CHECK(lane.batch.rows == 1);
}

TEST_CASE("a batch may consist of marker rows alone, and has no tensor then") {
  BatcherUnderTest lane(rule_of(4, 4, 0ms));
  lane.open("A");
  lane.mark('A', 0ms, last_and_end);
  CHECK(lane.close(0ms) == "| A0");
  CHECK(lane.batch.rows == 0);
}

TEST_CASE("at most `slots` marker rows are in a batch, one of every stream before a second one") {
  BatcherUnderTest lane(rule_of(2, 2, 0ms));
  lane.open("AB");
  for (int i = 0; i < 3; ++i) lane.mark('A', 0ms);
  lane.mark('B', 1ms);
  CHECK(lane.close(1ms) == "| A0 B0");
  CHECK(lane.close(1ms) == "| A1 A2");
}

TEST_CASE("without state a batch has several rows of a stream, alternating with those of others") {
  BatcherUnderTest lane(stateless(4, 4, 10ms));
  lane.open("ABC");
  for (int i = 0; i < 5; ++i) lane.row('A', 0ms);
  CHECK(lane.trigger(1ms) == Trigger::full);
  lane.row('B', 1ms);
  CHECK(lane.close(1ms) == "A0 B0 A1 A2 |");
  CHECK(lane.trigger(1ms) == std::nullopt);
  CHECK(lane.close(11ms) == "A3 A4 |");
}

TEST_CASE("without state, rows after a marker row still wait for the next batch") {
  BatcherUnderTest lane(stateless(4, 4, 10ms));
  lane.open("AB");
  lane.row('A', 0ms);
  lane.row('A', 0ms);
  lane.mark('A', 0ms);
  for (int i = 0; i < 4; ++i) lane.row('A', 0ms);
  CHECK(lane.trigger(0ms) == std::nullopt);  // two rows can be taken, not four
  CHECK(lane.close(10ms) == "A0 A1 | A2");
  CHECK(lane.trigger(10ms) == Trigger::full);
  CHECK(lane.close(10ms) == "A3 A4 A5 A6 |");
}

TEST_CASE("the tensor is as long as the smallest bucket that holds the rows") {
  BatchRule rule = rule_of(8, 4, 0ms);
  rule.row_buckets = {1, 2, 4};
  BatcherUnderTest lane(rule);
  lane.open("ABCD");
  lane.row('A', 0ms);
  (void)lane.close(0ms);
  CHECK(lane.batch.rows == 1);
  for (char name : {'A', 'B', 'C'}) lane.row(name, 1ms);
  (void)lane.close(1ms);
  CHECK(lane.batch.framed.size() == 3);
  CHECK(lane.batch.rows == 4);
  lane.mark('A', 2ms);
  (void)lane.close(2ms);
  CHECK(lane.batch.rows == 0);
}

TEST_CASE("a stream gets the lowest free slot, and none when all are taken") {
  Batcher batcher(rule_of(3, 1, 0ms));
  CHECK(batcher.open(StreamId{7}) == Slot{0});
  CHECK(batcher.open(StreamId{8}) == Slot{1});
  CHECK(batcher.open(StreamId{9}) == Slot{2});
  CHECK(batcher.free_slots() == 0);
  CHECK(batcher.open(StreamId{10}) == std::nullopt);
  (void)batcher.remove(Slot{1});
  (void)batcher.remove(Slot{0});
  CHECK(batcher.free_slots() == 2);
  CHECK(batcher.open(StreamId{10}) == Slot{0});
  CHECK(batcher.open(StreamId{11}) == Slot{1});
}

TEST_CASE("a slot stays taken until its END row is done") {
  BatcherUnderTest lane(rule_of(1, 1, 0ms));
  lane.open("A");
  lane.row('A', 0ms, last_and_end);
  (void)lane.close(0ms);
  CHECK(lane.batcher.open(StreamId{9}) == std::nullopt);
  lane.batcher.release(lane.slot('A'));
  CHECK(lane.batcher.open(StreamId{9}) == Slot{0});
}

TEST_CASE("a stream that leaves takes its waiting rows with it, in order") {
  BatcherUnderTest lane(rule_of(4, 1, 0ms));
  lane.open("AB");
  lane.row('A', 0ms);
  lane.row('A', 1ms);
  lane.mark('A', 2ms);
  lane.row('B', 3ms);
  CHECK(lane.close(3ms) == "A0 |");
  const auto rows = lane.batcher.remove(lane.slot('A'));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].row.seq == 1);
  CHECK(rows[1].row.seq == 2);
  CHECK(lane.batcher.waiting() == 1);
  CHECK(lane.close(3ms) == "B0 |");
  CHECK(lane.batcher.waiting() == 0);
}

TEST_CASE("the next stream of a slot inherits no rows and no deadline") {
  BatcherUnderTest lane(rule_of(1, 1, 10ms));
  lane.open("A");
  lane.row('A', 0ms);
  lane.row('A', 0ms);
  (void)lane.close(50ms);
  (void)lane.batcher.remove(lane.slot('A'));
  lane.open("B");
  CHECK(lane.batcher.waiting(lane.slot('B')) == 0);
  lane.row('B', 20ms);
  CHECK(lane.batcher.deadline(true) == t0 + 30ms);
}

TEST_CASE("each row of a batch has its stream and slot") {
  BatcherUnderTest lane(rule_of(4, 4, 0ms));
  lane.open("ABC");
  lane.row('C', 0ms);
  lane.mark('B', 0ms);
  (void)lane.close(0ms);
  CHECK(lane.batch.framed[0].stream == StreamId{2});
  CHECK(lane.batch.framed[0].slot == Slot{2});
  CHECK(lane.batch.marks[0].stream == StreamId{1});
  CHECK(lane.batch.marks[0].slot == Slot{1});
}

TEST_CASE("waiting rows are counted in total and by stream") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("AB");
  lane.row('A', 0ms);
  lane.row('A', 0ms);
  lane.mark('B', 0ms);
  CHECK(lane.batcher.streams() == 2);
  CHECK(lane.batcher.waiting() == 3);
  CHECK(lane.batcher.waiting(lane.slot('A')) == 2);
  (void)lane.close(0ms);
  CHECK(lane.batcher.waiting() == 1);
}

TEST_CASE(
    "a suspect is alone in its batch, and such batches alternate with batches of other rows") {
  BatcherUnderTest lane(rule_of(4, 4, 0ms));
  lane.open("ABCD");
  lane.suspect('A', 0ms);
  lane.suspect('B', 1ms);
  lane.row('C', 2ms);
  lane.mark('D', 2ms);
  CHECK(lane.close(3ms) == "C0 | D0");
  lane.row('C', 3ms);
  lane.mark('D', 3ms);
  CHECK(lane.close(3ms) == "A0 |");
  CHECK(lane.batch.is_trial());
  CHECK(lane.close(3ms) == "C1 | D1");
  CHECK_FALSE(lane.batch.is_trial());
  CHECK(lane.close(3ms) == "B0 |");
  CHECK(lane.trigger(3ms) == std::nullopt);
}

TEST_CASE("on a suspect's turn no batch closes until the worker has returned all batches") {
  BatcherUnderTest lane(rule_of(4, 4, 0ms));
  lane.open("AB");
  lane.suspect('A', 0ms);
  CHECK(lane.trigger(0ms, false) == std::nullopt);
  lane.row('B', 0ms);
  CHECK(lane.trigger(0ms, false) == Trigger::complete);  // the others' turn
  CHECK(lane.close(0ms) == "B0 |");
  lane.row('B', 1ms);
  CHECK(lane.trigger(1ms, false) == std::nullopt);
  CHECK(lane.batcher.deadline(false) == Time::max());
  CHECK(lane.close(1ms) == "A0 |");
  CHECK(lane.trigger(1ms, false) == Trigger::deadline);
}

TEST_CASE("a suspect does not wait for other rows, and they do not wait for it") {
  BatcherUnderTest lane(rule_of(4, 4, 10ms));
  lane.open("ABC");
  lane.suspect('A', 0ms);
  lane.row('B', 0ms);
  CHECK(lane.trigger(1ms) == Trigger::full);
  lane.row('C', 1ms);
  CHECK(lane.close(1ms) == "B0 C0 |");
  CHECK(lane.batch.trigger == Trigger::complete);
  CHECK(lane.close(1ms) == "A0 |");
}
