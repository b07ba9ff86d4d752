// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/lanes.h"

#include <catch2/catch.hpp>

#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("streams that open without a worker are served once one attaches") {
  Pipeline p;
  const auto a = p.open(1), b = p.open(2);
  p.row(a);
  p.row(b);
  const LaneId lane = p.lanes.attach(2, p.now);
  CHECK(p.next(lane) == "1.0 2.0");
  CHECK(p.lanes.opened().size() == 2);
  p.row(a);
  CHECK(p.next(lane) == "1.1");
  CHECK(p.lanes.opened().empty());
  CHECK(p.next(lane) == "none");
}

TEST_CASE("a batch needs a credit") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(1, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.row(a);
  CHECK(p.next(lane) == "1.0");
  CHECK(p.next(lane) == "none");
  CHECK(p.done(lane) == Lanes::DoneResult::accepted);
  CHECK(p.next(lane) == "1.1");
}

TEST_CASE("rows that a lost worker had are handed over again with RESET, rows not begun without") {
  Pipeline p;
  const LaneId first = p.lanes.attach(2, p.now);
  const auto a = p.open(1), b = p.open(2);
  p.row(a);
  p.row(a);
  p.row(a);
  CHECK(p.next(first) == "1.0");
  p.done(first);
  CHECK(p.next(first) == "1.1");
  p.lanes.lost(first, LossCause::worker, p.now);
  p.row(b);
  const LaneId second = p.lanes.attach(2, p.now);
  CHECK(p.next(second) == "2.0");
  p.done(second);
  CHECK(p.next(second) == "1.1R");
  CHECK(p.lanes.opened().size() == 1);
  p.done(second);
  CHECK(p.next(second) == "1.2");
  CHECK(numbers(p.events().batched) == std::vector<std::uint64_t>{1, 1, 2, 1});
}

TEST_CASE("RESET(worker_lost) stays due until a row with frames has carried it") {
  Pipeline p;
  const LaneId first = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.next(first);
  p.done(first);
  p.lanes.lost(first, LossCause::worker, p.now);
  p.row(a, flag::last, 0);
  p.row(a, flag::segment);
  p.row(a);
  const LaneId second = p.lanes.attach(2, p.now);
  CHECK(p.next(second) == "1.1R");
  CHECK(p.next(second) == "1.2R");
  p.done(second, BatchId{2});
  CHECK(p.next(second) == "1.3");
}

TEST_CASE("a batch is done once and in order, with an answer for each row or no answers") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1), b = p.open(2);
  p.row(a);
  p.row(b);
  p.next(lane);
  p.row(a);
  p.next(lane);
  std::vector<Answer> one(1), two(2);
  CHECK(p.done(lane, BatchId{2}) == Lanes::DoneResult::wrong);
  CHECK(p.lanes.done(lane, BatchId{1}, one, {}, done_at(p.now)) == Lanes::DoneResult::wrong);
  CHECK(p.lanes.done(lane, BatchId{1}, two, {}, done_at(p.now)) == Lanes::DoneResult::accepted);
  CHECK(p.done(lane, BatchId{1}) == Lanes::DoneResult::repeated);
  CHECK(p.done(lane, BatchId{9}) == Lanes::DoneResult::wrong);
  CHECK(p.done(lane, BatchId{2}) == Lanes::DoneResult::accepted);
  CHECK(p.done(lane, BatchId{1}) == Lanes::DoneResult::repeated);
}

TEST_CASE("a batch of another worker does not count as done before") {
  Pipeline p;
  const LaneId first = p.lanes.attach(2, p.now), second = p.lanes.attach(2, p.now);
  p.row(p.open(1));
  p.row(p.open(2));
  p.next(first);
  p.next(second);
  CHECK(p.done(first, BatchId{1}) == Lanes::DoneResult::accepted);
  CHECK(p.done(second, BatchId{2}) == Lanes::DoneResult::accepted);
  CHECK(p.done(second, BatchId{1}) == Lanes::DoneResult::wrong);
  CHECK(p.done(second, BatchId{2}) == Lanes::DoneResult::repeated);
}

TEST_CASE("the last 1024 batches that were done are remembered") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(1, p.now);
  const auto a = p.open(1);
  for (int i = 0; i < 1025; ++i) {
    p.row(a);
    p.next(lane);
    p.done(lane);
  }
  CHECK(p.done(lane, BatchId{2}) == Lanes::DoneResult::repeated);
  CHECK(p.done(lane, BatchId{1}) == Lanes::DoneResult::wrong);
}

TEST_CASE("rows with frames and marker rows are answered, each with its own answer") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.row(a, flag::last, 0);
  CHECK(p.next(lane) == "1.0 1.1");
  std::vector<Answer> body{{Answer::Kind::text, "body"}}, mark{{Answer::Kind::text, "mark"}};
  std::vector<Answer> two(2);
  CHECK(p.lanes.done(lane, p.last, body, two, done_at(p.now)) == Lanes::DoneResult::wrong);
  CHECK(p.lanes.done(lane, p.last, body, mark, done_at(p.now)) == Lanes::DoneResult::accepted);
  const auto events = p.events();
  REQUIRE(events.done.size() == 2);
  CHECK(events.done[0].answer.data == "body");
  CHECK(events.done[1].answer.data == "mark");
}

TEST_CASE("a slot is free when the END row is done, and the longest waiting stream gets it") {
  Pipeline p(1);
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  const auto b = p.open(2);
  p.now += 1s;
  const auto c = p.open(3);
  p.row(c);
  p.row(b);
  p.row(a, flag::last | flag::end);
  CHECK(p.next(lane) == "1.0");
  CHECK(p.next(lane) == "none");
  p.done(lane);
  CHECK(p.next(lane) == "2.0");
  CHECK(numbers(p.events().finished) == std::vector<std::uint64_t>{1});
}

TEST_CASE("a stream that aborts before a worker had a row gives its slot back at once") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.row(a, flag::last | flag::end | flag::abort, 0);
  const auto events = p.events();
  REQUIRE(events.dropped.size() == 1);
  CHECK(!events.dropped[0].code);
  CHECK(numbers(events.finished) == std::vector<std::uint64_t>{1});
  CHECK(p.next(lane) == "none");
}

TEST_CASE(
    "a stream that aborts after a worker had a row keeps its slot until the ABORT row is done") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.next(lane);
  p.row(a, flag::last | flag::end | flag::abort, 0);
  p.done(lane);
  CHECK(p.events().finished.empty());
  CHECK(p.next(lane) == "1.1");
  p.done(lane);
  CHECK(numbers(p.events().finished) == std::vector<std::uint64_t>{1});
}

TEST_CASE("a stream that aborts while its worker is lost keeps the rows that a worker has had") {
  Pipeline p;
  const LaneId first = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  CHECK(p.next(first) == "1.0");
  p.lanes.lost(first, LossCause::worker, p.now);
  const bool attached = GENERATE(false, true);
  LaneId second{};
  if (attached) second = p.lanes.attach(2, p.now);
  p.row(a, flag::last | flag::end | flag::abort, 0);
  CHECK(p.events().dropped.empty());
  if (!attached) second = p.lanes.attach(2, p.now);
  CHECK(p.next(second) == "1.0R");
  p.done(second);
  CHECK(p.next(second) == "1.1");
  p.done(second);
  CHECK(numbers(p.events().finished) == std::vector<std::uint64_t>{1});
}

TEST_CASE("a stream that waits for a slot longer than worker_wait fails") {
  Pipeline p;
  p.open(1);
  CHECK(p.lanes.deadline() == t0 + 30s);
  p.now += 30s;
  p.lanes.expire(p.now);
  const auto events = p.events();
  REQUIRE(events.dropped.size() == 1);
  CHECK(events.dropped[0].code == ErrorCode::no_worker);
}

TEST_CASE("a worker is lost if it sends no message, or no answer in time") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  CHECK(p.lanes.deadline() == t0 + 6s);
  const auto a = p.open(1);
  p.row(a);
  p.next(lane);
  for (int second = 0; second < 119; ++second) p.lanes.on_message(lane, p.now += 1s);
  p.lanes.expire(p.now);
  CHECK(p.events().overdue.empty());
  p.lanes.on_message(lane, p.now += 1s);
  p.lanes.expire(p.now);
  CHECK(numbers(p.events().overdue) == std::vector{number(lane)});
}

TEST_CASE("after Bye a stream moves when its next LAST row is done, and continues with RESET") {
  Pipeline p;
  const LaneId old_lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.next(old_lane);
  p.lanes.bye(old_lane, p.now);
  const LaneId new_lane = p.lanes.attach(2, p.now);
  p.done(old_lane);
  p.row(a, flag::last);
  CHECK(p.next(new_lane) == "none");
  CHECK(p.next(old_lane) == "1.1");
  const BatchId last_row = p.last;
  p.row(a, flag::segment);
  CHECK(p.next(old_lane) == "1.2");
  CHECK(p.done(old_lane, last_row) == Lanes::DoneResult::accepted);
  p.row(a);  // goes to the new worker, but only after the rows at the old one
  CHECK(p.next(old_lane) == "none");
  CHECK(p.next(new_lane) == "none");
  CHECK(p.events().left.empty());
  p.done(old_lane, BatchId{number(last_row) + 1});
  CHECK(p.next(new_lane) == "1.3R");
  CHECK(numbers(p.events().left) == std::vector{number(old_lane)});
}

TEST_CASE("after bye_wait a stream moves when its rows in batches are done") {
  Pipeline p;
  const LaneId old_lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.next(old_lane);
  p.row(a);
  p.lanes.bye(old_lane, p.now);
  const LaneId new_lane = p.lanes.attach(2, p.now);
  p.pass_bye_wait();
  CHECK(p.next(old_lane) == "none");
  CHECK(p.next(new_lane) == "none");
  CHECK(p.events().left.empty());
  p.done(old_lane);
  CHECK(p.next(new_lane) == "1.1R");
  CHECK(numbers(p.events().left) == std::vector{number(old_lane)});
}

TEST_CASE("after bye_wait a stream without rows moves, and its next row carries RESET") {
  Pipeline p;
  const LaneId old_lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.next(old_lane);
  p.done(old_lane);
  const bool room_later = GENERATE(false, true);
  LaneId new_lane{};
  if (!room_later) new_lane = p.lanes.attach(2, p.now);
  p.lanes.bye(old_lane, p.now);
  p.pass_bye_wait();
  if (room_later) {
    CHECK(p.events().left.empty());
    CHECK(p.lanes.deadline() > p.now);
    new_lane = p.lanes.attach(2, p.now);
  }
  CHECK(numbers(p.events().left) == std::vector{number(old_lane)});
  p.row(a);
  CHECK(p.next(new_lane) == "1.1R");
}

TEST_CASE("a stream of which the leaving worker had no row moves at once, without RESET") {
  Pipeline p;
  const LaneId old_lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a);
  p.lanes.bye(old_lane, p.now);
  CHECK(p.events().left.empty());
  const LaneId new_lane = p.lanes.attach(2, p.now);
  CHECK(p.next(new_lane) == "1.0");
  CHECK(numbers(p.events().left) == std::vector{number(old_lane)});
}

TEST_CASE("a leaving worker keeps its streams while no other worker has a free slot") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1);
  p.row(a, flag::last);
  p.next(lane);
  p.lanes.bye(lane, p.now);
  p.done(lane);
  p.row(a, flag::segment);
  CHECK(p.next(lane) == "1.1");
  CHECK(p.events().left.empty());
}

TEST_CASE("a worker without streams leaves at once") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  p.lanes.bye(lane, p.now);
  CHECK(numbers(p.events().left) == std::vector{number(lane)});
  CHECK(p.lanes.lanes().empty());
}
