// SPDX-License-Identifier: Apache-2.0
// When batches, answers and streams are due.
#include <catch2/catch.hpp>

#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// The worker sends a message every second. No other event happens.
void pass(Pipeline& p, LaneId lane, int seconds) {
  for (; seconds > 0; --seconds) p.lanes.on_message(lane, p.now += 1s);
  p.lanes.expire(p.now);
}

}  // namespace

TEST_CASE("a batch that waits for its deadline is due then, if its lane has a credit") {
  Pipeline p(2, 10ms);
  const LaneId lane = p.lanes.attach(1, p.now);
  const auto a = p.open(1);
  p.open(2);
  p.row(a);
  CHECK(p.next(lane) == "none");
  CHECK(p.lanes.deadline() == t0 + 10ms);
  p.now += 10ms;
  CHECK(p.next(lane) == "1.0");
  p.row(a);
  CHECK(p.lanes.deadline() == t0 + 6s);  // the worker's silence
}

TEST_CASE("while a lane has no slab, no batch closes, and none is due") {
  Pipeline p(2, 10ms);
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.open(2);
  p.row(a);
  CHECK(p.next(lane, false) == "none");
  CHECK_FALSE(p.lanes.slab_needed_since(lane));
  p.now += 10ms;
  CHECK(p.next(lane, false) == "none");
  CHECK(p.lanes.slab_needed_since(lane) == p.now);
  CHECK(p.lanes.deadline() == t0 + 6s);  // the worker's silence
  CHECK(p.next(lane) == "1.0");
}

TEST_CASE("a worker that returned all batches is lost if its device does not finish with them") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  pass(p, lane, 3);
  p.next(lane, false);
  pass(p, lane, 9);
  p.next(lane, false);
  CHECK(p.events().overdue.empty());
  pass(p, lane, 1);
  CHECK(p.events().overdue == std::vector{lane});
}

TEST_CASE("in a drain no batch waits for its deadline, also of a worker that attaches later") {
  Pipeline p(2, 10ms);
  const bool later = GENERATE(false, true);
  if (later) p.lanes.drain(Time::max());
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.open(2);
  p.row(a);
  if (!later) {
    CHECK(p.next(lane) == "none");
    p.lanes.drain(Time::max());
  }
  CHECK(p.next(lane) == "1.0");
}

TEST_CASE("in a drain no stream waits for a slot after the limit") {
  Pipeline p;
  p.open(1);
  p.lanes.drain(t0 + 5s);
  CHECK(p.lanes.deadline() == t0 + 5s);
  p.lanes.expire(p.now += 5s);
  CHECK(p.events().dropped.size() == 1);
}

TEST_CASE("a stream with rows at a leaving worker does not wait yet") {
  Pipeline p(2, 0s, 5s);
  const LaneId leaving = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a, flag::last);
  CHECK(p.next(leaving) == "1.0");
  p.row(a, flag::segment);
  CHECK(p.next(leaving) == "1.1");
  p.lanes.bye(leaving, p.now);
  const LaneId other = p.lanes.attach(2, p.now);
  p.done(leaving, BatchId{1});  // the stream moves, and 1.1 is not done yet
  p.lanes.lost(other, LossCause::worker, p.now);
  pass(p, leaving, 6);
  CHECK(p.events().dropped.empty());
  CHECK(p.lanes.deadline() == p.now + 4s);  // the leaving worker's answer
  SECTION("it is done") { p.done(leaving, BatchId{2}); }
  SECTION("its worker is lost") { p.lanes.lost(leaving, LossCause::worker, p.now); }
  CHECK(p.lanes.deadline() == p.now + 5s);
}

TEST_CASE("an answer is due from the hand-over or the answer before it, whichever is later") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.row(a);
  CHECK(p.next(lane) == "1.0");
  CHECK(p.next(lane) == "1.1");
  pass(p, lane, 9);
  p.done(lane, BatchId{1});
  pass(p, lane, 9);
  CHECK(p.events().overdue.empty());
  pass(p, lane, 1);
  CHECK(numbers(p.events().overdue) == std::vector{number(lane)});
}

TEST_CASE("the reason of a loss has the timeout and its length") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  SECTION("it was silent") {
    p.lanes.expire(p.now += 6s);
    CHECK(p.events().why_overdue == std::vector<std::string>{"no heartbeat for 6 s"});
  }
  SECTION("its first answer did not come") {
    p.row(a);
    CHECK(p.next(lane) == "1.0");
    pass(p, lane, 120);
    CHECK(p.events().why_overdue ==
          std::vector<std::string>{"batch 1 was not answered within 120 s"});
  }
  SECTION("a later answer did not come") {
    for (int i = 0; i < 2; ++i) {
      if (i == 1) p.done(lane);
      p.row(a);
      p.next(lane);
    }
    pass(p, lane, 10);
    CHECK(p.events().why_overdue ==
          std::vector<std::string>{"batch 2 was not answered within 10 s"});
  }
}

TEST_CASE("the time for which this process did not run is added to what workers have left") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.next(lane);
  p.done(lane);
  p.row(a);
  p.next(lane);
  p.lanes.on_message(lane, p.now += 4s);
  p.lanes.expire(p.now);
  p.lanes.extend_deadlines(1h, p.now += 1h);
  CHECK(p.lanes.deadline() == p.now + 6s);
  pass(p, lane, 5);
  CHECK(p.events().overdue.empty());
  pass(p, lane, 1);
  CHECK(numbers(p.events().overdue) == std::vector{number(lane)});
}

TEST_CASE("a hung worker is lost after its timeout and the time for which this process was late") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  const bool silent = GENERATE(false, true);
  if (!silent) {
    p.row(a);
    p.next(lane);
    p.done(lane);
    p.row(a);
    p.next(lane);
  }
  Duration late{0};
  while (p.events().overdue.empty()) {
    if (!silent) p.lanes.on_message(lane, p.now);
    p.lanes.extend_deadlines(700ms, p.now += 700ms);
    late += 700ms;
    p.lanes.expire(p.now);
    for (int i = 0; i < 10 && p.lanes.lanes().size() > 0; ++i) {
      p.now += 100ms;
      if (!silent) p.lanes.on_message(lane, p.now);
      p.lanes.expire(p.now);
    }
  }
  CHECK(p.now == t0 + (silent ? 6s : 10s) + late);
}

TEST_CASE("a worker that waits for a slab is not lost when this process was stopped for long") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  p.next(lane, false);
  p.lanes.extend_deadlines(1h, p.now += 1h);
  p.lanes.expire(p.now);
  CHECK(p.events().overdue.empty());
}

TEST_CASE("the time for which this process did not run does not count as the wait of a stream") {
  Pipeline p(2, 0s, 30s);
  p.open(1);
  p.now += 5s;
  p.open(2);
  p.lanes.extend_deadlines(1h, p.now += 1h);
  CHECK(p.lanes.deadline() == p.now + 25s);
  p.lanes.expire(p.now += 25s);
  CHECK(numbers(p.events().finished) == std::vector<std::uint64_t>{1});
  CHECK(p.lanes.deadline() == p.now + 5s);
  p.lanes.attach(2, p.now);
  CHECK(p.lanes.waiting() == 0);
}

TEST_CASE(
    "a worker's deadline is extended only by the stop of this process after its last message") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  p.now += 1h;
  p.lanes.on_message(lane, p.now);  // received before the late timer
  p.lanes.extend_deadlines(1h, p.now);
  CHECK(p.lanes.deadline() == p.now + 6s);
}

TEST_CASE("a second Bye does not extend bye_wait") {
  Pipeline p;
  const LaneId leaving = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.next(leaving);
  p.lanes.bye(leaving, p.now);
  const LaneId other = p.lanes.attach(2, p.now);
  p.done(leaving);
  p.lanes.bye(leaving, p.now += 59s);
  p.lanes.on_message(leaving, p.now);
  p.lanes.on_message(other, p.now);
  CHECK(p.lanes.deadline() == p.now + 1s);
  p.lanes.expire(p.now += 1s);
  p.row(a);
  CHECK(p.next(other) == "1.1R");
}

TEST_CASE("a lane without a slab counts as changed when a slab is free") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  std::vector<LaneId> changed;
  p.next(lane);
  p.lanes.take_changed(changed);
  p.lanes.slab_freed(lane);  // it has one already
  p.lanes.take_changed(changed);
  CHECK(changed.empty());
  p.next(lane, false);
  p.lanes.slab_freed(lane);
  p.lanes.take_changed(changed);
  CHECK(changed == std::vector{lane});
}
