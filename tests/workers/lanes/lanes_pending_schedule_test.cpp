// SPDX-License-Identifier: Apache-2.0
// Random schedules of rows that workers leave pending, with workers that leave, hang and are lost.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/support/sampled.h"
#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace millrace::test;

namespace {

class PendingSchedule {
 public:
  explicit PendingSchedule(std::uint64_t seed) : random_(seed) {}

  void run() {
    for (std::uint64_t id = 1; id <= streams; ++id) p_.open(id);
    for (int step = 0; step < 400; ++step) act();
    finish();
  }
  int answered = 0, expired = 0, lost = 0, stopped = 0;

 private:
  static constexpr std::uint64_t streams = 3;
  using Place = std::pair<StreamId, std::uint64_t>;

  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  void act() {
    const std::uint32_t which = pick(20);
    p_.now += 1ms * pick(300);
    for (const auto& [lane, state] : p_.lanes.lanes()) p_.lanes.on_message(lane, p_.now);
    if (p_.lanes.deadline() <= p_.now) p_.lanes.expire(p_.now), read();
    if (which < 8)
      add(StreamId{1 + pick(streams)}, pick(4) == 0 ? flag::last : 0);
    else if (which < 14)
      give_back();
    else if (which < 17)
      answer();
    else if (which == 17 && p_.lanes.lanes().size() < 3)
      p_.lanes.attach(1 + pick(3), p_.now);
    else if (which == 18 && !p_.lanes.lanes().empty() && pick(3) == 0)
      leave();
    settle();
  }
  void add(StreamId stream, std::uint8_t flags) {
    // As a stream does: it bounds its rows that are not done.
    if (p_.seq[stream] - done_[stream] < 40) p_.row(stream, flags);
  }
  void leave() {
    const LaneId lane = p_.lanes.lanes().begin()->first;
    if (pick(2) == 0) return void(p_.lanes.bye(lane, p_.now));
    ++lost;
    p_.lanes.lost(lane, LossCause::service, p_.now);
    read();
    for (const auto& [place, at] : pending_) REQUIRE(at != lane);  // they have failed
  }
  void give_back() {
    for (const auto& [id, lane] : p_.lanes.lanes()) {
      if (lane.held().empty() || pick(2) == 0) continue;
      const Batch batch = lane.held().front();
      const auto answers = answers_to(batch.framed, id), marks = answers_to(batch.marks, id);
      auto given = answers, given_marks = marks;
      REQUIRE(p_.lanes.done(id, batch.id, given, given_marks, done_at(p_.now)) ==
              Lanes::DoneResult::accepted);
      return;
    }
  }
  std::vector<Answer> answers_to(const std::vector<BatchRow>& rows, LaneId lane) {
    std::vector<Answer> answers;
    for (const BatchRow& row : rows) {
      const bool pends = pick(3) == 0;
      if (pends) pending_[{row.stream, row.ready.row.seq}] = lane;
      answers.push_back({pends ? Answer::Kind::pending : Answer::Kind::text, pends ? "" : "now"});
    }
    return answers;
  }
  void answer() {
    if (pending_.empty()) return;
    auto at = pending_.begin();
    std::advance(at, pick(static_cast<std::uint32_t>(pending_.size())));
    Answer late{Answer::Kind::text, "late"};
    REQUIRE(p_.lanes.answer(at->second, at->first.first, at->first.second, late, p_.now));
    pending_.erase(at);
    ++answered;
  }
  void settle() {
    read();
    std::vector<LaneId> lanes;
    for (const auto& [id, lane] : p_.lanes.lanes()) lanes.push_back(id);
    for (const LaneId lane : lanes)
      while (const Batch* batch = p_.lanes.next(lane, true, p_.now))
        for (const auto* rows : {&batch->framed, &batch->marks})
          for (const BatchRow& row : *rows) {
            const auto count = pending_of(row.stream);
            REQUIRE(count < Lanes::max_pending_rows);
            for (const auto& [place, at] : pending_)
              if (place.first == row.stream) REQUIRE(at == lane);  // it does not move
            REQUIRE(row.ready.row.seq >= done_[row.stream]);
          }
    read();
  }
  std::size_t pending_of(StreamId stream) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        pending_, [&](const auto& row) { return row.first.first == stream; }));
  }
  void read() {
    const auto events = p_.events();
    for (const LaneId left : events.left)
      for (const auto& [place, lane] : pending_) REQUIRE(lane != left);
    for (const auto& done : events.done) {
      REQUIRE(done.seq == done_[done.stream]++);  // in order, each once
      const auto row = pending_.find({done.stream, done.seq});
      if (done.answer.kind == Answer::Kind::error) {
        if (row != pending_.end()) pending_.erase(row), ++expired;
      } else {
        REQUIRE(row == pending_.end());
      }
    }
    for (std::uint64_t id = 1; id <= streams; ++id)
      if (pending_of(StreamId{id}) >= Lanes::max_pending_rows) ++stopped;
  }
  void finish() {
    for (std::uint64_t id = 1; id <= streams; ++id) p_.row(StreamId{id}, flag::last | flag::end);
    for (int round = 0; round < 2000 && p_.lanes.streams() > 0; ++round) {
      if (p_.lanes.lanes().empty()) p_.lanes.attach(2, p_.now);
      for (const auto& [lane, state] : p_.lanes.lanes()) p_.lanes.on_message(lane, p_.now);
      give_back();
      answer();
      settle();
    }
    REQUIRE(p_.lanes.streams() == 0);
    for (std::uint64_t id = 1; id <= streams; ++id)
      REQUIRE(done_[StreamId{id}] == p_.seq[StreamId{id}]);
  }

  std::mt19937_64 random_;
  Pipeline p_{2, 0s, 1h};
  std::map<Place, LaneId> pending_;
  std::map<StreamId, std::uint64_t> done_;
};

}  // namespace

TEST_CASE(
    "rows are done in order, each once, whichever rows are pending and whatever their workers do") {
  int answered = 0, expired = 0, lost = 0, stopped = 0;
  for (std::uint64_t seed = 1; seed <= sampled(1000u); ++seed) {
    INFO("seed " << seed);
    PendingSchedule schedule(seed);
    schedule.run();
    answered += schedule.answered, expired += schedule.expired, lost += schedule.lost;
    stopped += schedule.stopped;
  }
  for (const int times : {answered, expired, lost, stopped})
    CHECK(times > static_cast<int>(sampled(100u)));
}
