// SPDX-License-Identifier: Apache-2.0
// The capacity for streams, and which lane a stream gets.
#include <catch2/catch.hpp>

#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("the capacity is slots times workers, and the slots of one without workers") {
  Pipeline p;
  CHECK(p.lanes.capacity() == 2);
  const LaneId first = p.lanes.attach(2, p.now);
  CHECK(p.lanes.capacity() == 2);
  p.lanes.attach(2, p.now);
  CHECK(p.lanes.capacity() == 4);
  p.lanes.lost(first, LossCause::worker, p.now);
  CHECK(p.lanes.capacity() == 2);
}

TEST_CASE("a leaving worker gets no new streams") {
  Pipeline p;
  const LaneId leaving = p.lanes.attach(2, p.now);
  p.row(p.open(1));
  CHECK(p.next(leaving) == "1.0");
  const LaneId other = p.lanes.attach(2, p.now);
  p.lanes.bye(leaving, p.now);
  CHECK(p.lanes.capacity() == 2);
  p.row(p.open(2));
  CHECK(p.next(other) == "2.0");
}

TEST_CASE(
    "of a leaving worker the streams are counted that have moved, and those that it still has") {
  Pipeline p;
  const LaneId leaving = p.lanes.attach(2, p.now);
  const auto busy = p.open(1);
  p.row(busy);
  CHECK(p.next(leaving) == "1.0");
  p.open(2);  // the worker has no row of it
  CHECK(p.lanes.bye(leaving, p.now).waiting == 2);
  p.lanes.attach(2, p.now);
  const auto counted = [&] { return p.lanes.leaving_streams(leaving); };
  CHECK((counted().moved == 1 && counted().waiting == 1));
  p.done(leaving);
  p.row(busy, flag::last | flag::end);
  CHECK(p.next(leaving) == "1.1");
  p.done(leaving);  // a stream that has ended did not move
  CHECK(numbers(p.events().left) == std::vector{number(leaving)});
  CHECK((counted().moved == 0 && counted().waiting == 0));  // the lane is gone
}

TEST_CASE("a worker that can give all its streams away has none left after Bye") {
  Pipeline p;
  const LaneId leaving = p.lanes.attach(2, p.now);
  p.open(1);
  p.lanes.attach(2, p.now);
  const MovedStreams streams = p.lanes.bye(leaving, p.now);
  CHECK((streams.moved == 1 && streams.waiting == 0));
}

TEST_CASE("streams spread evenly over the workers") {
  Pipeline p;
  const LaneId first = p.lanes.attach(2, p.now), second = p.lanes.attach(2, p.now);
  for (std::uint64_t id : {1, 2, 3, 4}) p.row(p.open(id));
  CHECK(p.next(first) == "1.0 3.0");
  CHECK(p.next(second) == "2.0 4.0");
}

TEST_CASE("the streams of a worker that is lost or overdue go to the others' free slots at once") {
  Pipeline p;
  const LaneId first = p.lanes.attach(2, p.now), second = p.lanes.attach(2, p.now);
  p.row(p.open(1));
  CHECK(p.next(first) == "1.0");
  const bool by_the_clock = GENERATE(false, true);
  if (by_the_clock) {
    p.lanes.on_message(second, p.now += 6s);
    p.lanes.expire(p.now);
    CHECK(numbers(p.events().overdue) == std::vector{number(first)});
  } else {
    p.lanes.lost(first, LossCause::worker, p.now);
  }
  CHECK(p.next(second) == "1.0R");
}

TEST_CASE(
    "the slot of a stream that aborts before a worker had a row goes to a stream that waits") {
  Pipeline p(1);
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1), b = p.open(2);
  p.row(b);
  p.row(a, flag::last | flag::end | flag::abort, 0);
  CHECK(p.next(lane) == "2.0");
}

TEST_CASE("a stream that no worker ever had is dropped at once when its client is gone") {
  Pipeline p;
  const auto a = p.open(1), b = p.open(2);
  p.row(a);
  p.row(a, flag::last | flag::end);
  p.lanes.abandon(a);
  p.lanes.abandon(b);  // without a row
  p.lanes.abandon(b);
  const auto events = p.events();
  REQUIRE(events.dropped.size() == 2);
  CHECK(!events.dropped[0].code);
  CHECK(numbers(events.finished) == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("a stream with a slot is answered although its client is gone") {
  Pipeline p;
  const LaneId first = p.lanes.attach(2, p.now);
  const auto a = p.open(1), b = p.open(2);
  p.row(a, flag::last | flag::end);
  p.lanes.abandon(a);
  CHECK(p.events().dropped.empty());
  CHECK(p.next(first) == "1.0");
  p.lanes.abandon(b);
  p.lanes.lost(first, LossCause::worker, p.now);  // it had a row of the first stream only
  CHECK(numbers(p.events().finished) == std::vector<std::uint64_t>{2});
  const LaneId second = p.lanes.attach(2, p.now);
  CHECK(p.next(second) == "1.0R");
}
