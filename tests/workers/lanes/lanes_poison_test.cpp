// SPDX-License-Identifier: Apache-2.0
// Rows at which workers die, and the effect on other rows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>

#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr std::uint64_t poisonous = 1;  // the stream

// Workers that die at some rows of one stream. Each is replaced at once.
struct DyingWorkers {
  explicit DyingWorkers(std::uint32_t slots, bool stateful = true) : p(slots, 0s, 1h, stateful) {}

  Pipeline p;
  std::set<std::uint64_t> poison;          // rows of the stream
  bool by_timeout = false;                 // the worker hangs instead
  std::size_t overlap = 1;                 // batches that a worker computes at a time
  std::function<void()> on_death = [] {};  // called before the next worker attaches
  std::vector<LaneId> workers;
  int deaths = 0;
  std::map<StreamId, std::vector<std::uint64_t>> answered, failed;
  std::map<StreamId, int> resets;
  std::map<StreamId, std::optional<ErrorCode>> dropped;
  std::set<StreamId> gone;

  void attach(int count, std::uint32_t credits) {
    for (; count > 0; --count) workers.push_back(p.lanes.attach(credits, p.now));
  }

  // True if the worker dies at the batches that it computes now.
  bool kills(const Lane& lane) const {
    const auto computed = static_cast<std::ptrdiff_t>(std::min(overlap, lane.held().size()));
    return std::any_of(lane.held().begin(), lane.held().begin() + computed,
                       [this](const Batch& batch) { return is_poisonous(batch); });
  }
  bool is_poisonous(const Batch& batch) const {
    for (const auto* rows : {&batch.framed, &batch.marks})
      for (const BatchRow& row : *rows)
        if (row.stream == StreamId{poisonous} && poison.contains(row.ready.row.seq)) return true;
    return false;
  }

  void read() {
    const SortedEvents events = p.events();
    for (const SortedEvents::Done& done : events.done) {
      const bool error = done.answer.kind == Answer::Kind::error;
      (error ? failed : answered)[done.stream].push_back(done.seq);
      if (!error) resets[done.stream] += done.reason == ResetReason::worker_lost;
    }
    for (const SortedEvents::Dropped& drop : events.dropped) dropped[drop.stream] = drop.code;
    gone.insert(events.finished.begin(), events.finished.end());
  }

  // Every worker takes as many batches as it can, and then either dies or returns the oldest one.
  void turn(std::uint32_t credits) {
    for (LaneId& worker : workers) {
      while (p.next(worker) != "none") {
      }
      const auto lane = p.lanes.lanes().find(worker);
      if (lane == p.lanes.lanes().end() || lane->second.held().empty()) continue;
      const Batch& oldest = lane->second.held().front();
      if (kills(lane->second)) {
        ++deaths;
        die(worker);
        on_death();
        worker = p.lanes.attach(credits, p.now);
      } else {
        REQUIRE(p.done(worker, oldest.id) == Lanes::DoneResult::accepted);
      }
      read();
    }
  }

  void die(LaneId worker) {
    if (!by_timeout) return p.lanes.lost(worker, LossCause::worker, p.now);
    p.now += 120s;
    for (LaneId other : workers)
      if (other != worker) p.lanes.on_message(other, p.now);
    p.lanes.expire(p.now);
    REQUIRE(numbers(p.lanes.events().overdue) == std::vector{number(worker)});
  }
};

std::vector<std::uint64_t> first(std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("a row over which workers die fails alone, wherever it is in its batch") {
  const std::uint64_t position = GENERATE(0, 1, 2, 3, 4, 5);
  const std::uint32_t credits = GENERATE(1, 2, 3);
  const int workers = GENERATE(1, 2);
  const bool by_timeout = GENERATE(false, true);
  DyingWorkers play(6);
  play.poison = {0};
  play.by_timeout = by_timeout && workers == 1;
  std::vector<StreamId> streams;
  for (std::uint64_t i = 0; i < 6; ++i)
    streams.push_back(play.p.open(i == position ? poisonous : i + 10));
  for (StreamId stream : streams) play.p.row(stream);
  play.attach(workers, credits);
  for (int i = 0; i < 40; ++i) {
    if (i < 5)
      for (StreamId stream : streams) play.p.row(stream);
    play.turn(credits);
  }
  CHECK(play.deaths == 2);
  CHECK(play.failed == std::map<StreamId, std::vector<std::uint64_t>>{
                           {StreamId{poisonous}, std::vector<std::uint64_t>{0}}});
  for (StreamId stream : streams) {
    if (stream != StreamId{poisonous}) CHECK(play.answered[stream] == first(6));
    CHECK(play.resets[stream] <= 2);
  }
  CHECK(play.answered[StreamId{poisonous}] == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
  CHECK(play.resets[StreamId{poisonous}] == 1);
  CHECK(play.dropped.empty());
}

TEST_CASE("a stream ends with worker_failed after the second of its rows over which workers died") {
  const std::uint32_t credits = GENERATE(1, 2, 3);
  DyingWorkers play(6);
  for (std::uint64_t seq = 0; seq < 100; ++seq) play.poison.insert(seq);
  std::vector<StreamId> streams;
  for (std::uint64_t i = 1; i <= 6; ++i) streams.push_back(play.p.open(i));
  play.attach(1, credits);
  for (int i = 0; i < 60; ++i) {
    if (i < 20)
      for (StreamId stream : streams) play.p.row(stream);
    play.turn(credits);
  }
  CHECK(play.deaths == 4);
  CHECK(play.failed[StreamId{poisonous}] == std::vector<std::uint64_t>{0, 1});
  CHECK(play.dropped == std::map<StreamId, std::optional<ErrorCode>>{
                            {StreamId{poisonous}, ErrorCode::worker_failed}});
  CHECK(play.gone == std::set{StreamId{poisonous}});
  for (std::uint64_t i = 2; i <= 6; ++i) {
    CHECK(play.answered[StreamId{i}] == first(20));
    CHECK(play.resets[StreamId{i}] <= 4);
  }
}

TEST_CASE("rows over which workers die that compute several batches at a time end their stream") {
  const std::uint64_t first_poison = GENERATE(0, 1, 2);
  const std::uint32_t overlap = GENERATE(2, 3);
  const bool streams_come = GENERATE(false, true);
  const int others = GENERATE(5, 49);
  DyingWorkers play(100);
  play.overlap = overlap;
  for (std::uint64_t seq = first_poison; seq < 100; ++seq) play.poison.insert(seq);
  std::vector<StreamId> streams;
  for (std::uint64_t i = 0; i <= 5; ++i)
    streams.push_back(play.p.open(i == 5 ? poisonous : i + 10));
  for (int i = 5; i < others; ++i)
    streams.push_back(play.p.open(100 + static_cast<std::uint64_t>(i)));
  play.attach(1, overlap);
  int come = 0;
  for (int i = 0; i < 400; ++i) {
    if (i < 10)
      for (StreamId stream : streams)
        if (!play.gone.contains(stream)) play.p.row(stream);
    play.on_death = [&] {
      if (streams_come && come++ < 40) play.p.row(play.p.open(1000 + std::uint64_t(come)));
    };
    play.turn(overlap);
  }
  CHECK(play.deaths <= 4);
  CHECK(play.failed == std::map<StreamId, std::vector<std::uint64_t>>{
                           {StreamId{poisonous}, {first_poison, first_poison + 1}}});
  CHECK(play.dropped == std::map<StreamId, std::optional<ErrorCode>>{
                            {StreamId{poisonous}, ErrorCode::worker_failed}});
  for (StreamId stream : streams)
    if (stream != StreamId{poisonous}) CHECK(play.answered[stream] == first(10));
}

TEST_CASE("a marker row over which workers die fails alone") {
  DyingWorkers play(3);
  play.poison = {1};
  const auto a = play.p.open(poisonous), b = play.p.open(2), c = play.p.open(3);
  for (StreamId stream : {a, b, c}) {
    play.p.row(stream);
    play.p.row(stream, flag::last, 0);
    play.p.row(stream, flag::segment);
  }
  play.attach(1, 2);
  for (int i = 0; i < 20; ++i) play.turn(2);
  CHECK(play.deaths == 2);
  CHECK(play.failed == std::map<StreamId, std::vector<std::uint64_t>>{{a, {1}}});
  CHECK(play.answered[b] == first(3));
  CHECK(play.answered[c] == first(3));
}

TEST_CASE("an END row over which workers die ends its stream") {
  DyingWorkers play(2);
  play.poison = {0};
  play.p.row(play.p.open(poisonous), flag::last | flag::end);
  play.attach(1, 2);
  for (int i = 0; i < 3; ++i) play.turn(2);
  CHECK(play.deaths == 2);
  CHECK(play.gone == std::set{StreamId{poisonous}});
  CHECK(play.dropped.empty());
  CHECK(play.p.lanes.streams() == 0);
}

TEST_CASE("rows of one stream in one batch are tried one by one") {
  DyingWorkers play(2, false);
  play.poison = {2};
  const auto a = play.p.open(poisonous);
  for (int i = 0; i < 4; ++i) play.p.row(a);
  play.attach(1, 2);
  for (int i = 0; i < 10; ++i) play.turn(2);
  CHECK(play.deaths == 2);
  CHECK(play.failed[a] == std::vector<std::uint64_t>{2});
  CHECK(play.answered[a] == std::vector<std::uint64_t>{0, 1, 3});
}

TEST_CASE("a row that was behind the oldest batch of a lost worker is no suspect") {
  Pipeline p;
  const LaneId lane = p.lanes.attach(2, p.now);
  const auto a = p.open(1), b = p.open(2);
  p.row(a);
  CHECK(p.next(lane) == "1.0");
  p.row(b);
  CHECK(p.next(lane) == "2.0");
  p.lanes.lost(lane, LossCause::worker, p.now);
  const LaneId other = p.lanes.attach(3, p.now);
  CHECK(p.next(other) == "2.0R");
  CHECK(p.next(other) == "none");
  p.done(other);
  CHECK(p.next(other) == "1.0R");
  CHECK(p.next(other) == "none");
}

TEST_CASE("a trial is the only batch of its worker, and other rows come before the next trial") {
  Pipeline p(3);
  const LaneId lost = p.lanes.attach(2, p.now);
  const auto a = p.open(1), b = p.open(2), c = p.open(3);
  p.row(a);
  p.row(b);
  CHECK(p.next(lost) == "1.0 2.0");
  p.lanes.lost(lost, LossCause::worker, p.now);
  const LaneId lane = p.lanes.attach(3, p.now);
  CHECK(p.next(lane) == "1.0R");
  p.row(c);
  CHECK(p.next(lane) == "none");
  p.done(lane);
  CHECK(p.next(lane) == "3.0");
  p.row(c);
  CHECK(p.next(lane) == "none");  // the suspect is next
  p.done(lane);
  CHECK(p.next(lane) == "2.0R");
  CHECK(p.next(lane) == "none");
  p.done(lane);
  CHECK(p.next(lane) == "3.1");
}

TEST_CASE("no batch is due while a suspect waits for its worker to return its batches") {
  Pipeline p(3, 10ms);
  const auto a = p.open(1), b = p.open(2);
  p.open(3);
  p.row(a);
  const LaneId lost = p.lanes.attach(2, p.now);
  p.now += 10ms;
  CHECK(p.next(lost) == "1.0");
  p.lanes.lost(lost, LossCause::worker, p.now);
  p.row(b);
  const LaneId lane = p.lanes.attach(2, p.now += 10ms);
  CHECK(p.next(lane) == "2.0");
  p.row(b);
  CHECK(p.lanes.deadline() == p.now + 6s);  // the worker's silence
  p.lanes.on_message(lane, p.now += 10ms);
  CHECK(p.next(lane) == "none");
  CHECK(p.lanes.deadline() == p.now + 6s);
  p.done(lane);
  CHECK(p.next(lane) == "1.0R");
}

TEST_CASE("a suspect whose worker was lost over a batch before it is tried by the next worker") {
  Pipeline p;
  const auto a = p.open(1), b = p.open(2);
  p.row(a);
  LaneId lane = p.lanes.attach(2, p.now);
  CHECK(p.next(lane) == "1.0");
  p.lanes.lost(lane, LossCause::worker, p.now);
  p.row(b);
  lane = p.lanes.attach(2, p.now);
  CHECK(p.next(lane) == "2.0");
  p.lanes.lost(lane, LossCause::worker, p.now);
  CHECK(p.events().done.empty());
  lane = p.lanes.attach(2, p.now);
  CHECK(p.next(lane) == "1.0R");
}

TEST_CASE("no row is suspect or fails because the service dropped its worker") {
  Pipeline p;
  const auto a = p.open(1), b = p.open(2);
  p.row(a);
  p.row(b);
  const auto attach = [&] { return p.lanes.attach(2, p.now); };
  LaneId lane = attach();
  for (int i = 0; i < 3; ++i) {
    CHECK(p.next(lane) == (i == 0 ? "1.0 2.0" : "1.0R 2.0R"));
    p.lanes.lost(lane, LossCause::service, p.now);
    lane = attach();
  }
  CHECK(p.next(lane) == "1.0R 2.0R");
  p.lanes.lost(lane, LossCause::worker, p.now);
  for (int i = 0; i < 3; ++i) {
    lane = attach();
    CHECK(p.next(lane) == "1.0R");  // still alone
    p.lanes.lost(lane, LossCause::service, p.now);
  }
  CHECK(p.events().done.empty());
}

TEST_CASE("a stream that moves is tried and ended like any other") {
  Pipeline p(2, 0s, 30s);
  const auto a = p.open(1);
  p.row(a, flag::last);
  LaneId lane = p.lanes.attach(2, p.now);
  CHECK(p.next(lane) == "1.0");
  p.lanes.lost(lane, LossCause::worker, p.now);
  const LaneId leaving = p.lanes.attach(2, p.now);
  CHECK(p.next(leaving) == "1.0R");
  p.lanes.bye(leaving, p.now);
  const LaneId other = p.lanes.attach(2, p.now);
  p.row(a, flag::segment);
  p.lanes.lost(leaving, LossCause::worker, p.now);
  CHECK(p.events().done.size() == 1);
  CHECK(p.next(other) == "1.1R");
  p.lanes.lost(other, LossCause::worker, p.now);
  lane = p.lanes.attach(2, p.now);
  CHECK(p.next(lane) == "1.1R");
  p.lanes.lost(lane, LossCause::worker, p.now);
  const auto events = p.events();
  REQUIRE(events.dropped.size() == 1);
  CHECK(events.dropped[0].code == ErrorCode::worker_failed);
  CHECK(p.lanes.streams() == 0);
}
