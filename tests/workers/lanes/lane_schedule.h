// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/message_room.h"
#include "tests/workers/hub/queue_watch.h"
#include "tests/workers/lanes/lane_history.h"
#include "tests/workers/lanes/message_history.h"

namespace millrace::test {

using namespace std::chrono_literals;

// A seeded schedule of streams and workers in virtual time. Every step is checked against the
// guarantees of Lanes, and the gauges against the waits of the rows.
class LaneSchedule {
 public:
  LaneSchedule(std::uint64_t seed, Tally& tally)
      : random_(seed),
        poison_(one_in(3)),
        rule_(some_rule()),
        lanes_(rule_),
        history_(rule_, tally) {
    history_.only_poison_kills = poison_;
  }

  void run() {
    const int drains = pick(4) == 0 ? 200 + static_cast<int>(pick(100)) : -1;
    for (int step = 0; step < 300; ++step) {
      pass_time();
      if (step == drains) drain();
      act();
      for (auto& [lane, worker] : history_.workers)
        if (pick(20) != 0) send_message(lane, worker);
      settle();
    }
    finish();
  }

 private:
  LanesRule some_rule() {
    return {.batch = {.slots = 1 + pick(4),
                      .rows = 1 + pick(4),
                      .max_wait = Duration(pick(3) * 1ms),
                      .row_buckets = {},
                      .stateful = pick(8) != 0},
            .worker_wait = 1ms * (100 + pick(2000)),
            .bye_wait = 1ms * (100 + pick(2000)),
            .timeouts = poison_
                            ? LaneTimeouts{.silence = 1h, .answer = 1h, .first_answer = 1h}
                            : LaneTimeouts{.silence = 1500ms, .answer = 1s, .first_answer = 2s}};
  }
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool one_in(std::uint32_t n) { return pick(n) == 0; }
  auto& some(auto& all) {
    auto at = all.begin();
    std::advance(at, pick(static_cast<std::uint32_t>(all.size())));
    return *at;
  }

  // Mostly a short time, sometimes exactly until the next deadline.
  void pass_time() {
    const std::uint32_t how = pick(60);
    if (how > 5) pass(1ms * pick(3));
    if (how == 1 || how == 2) pass(1ms * pick(500));
    const bool soon = lanes_.deadline() < now_ + 10min;
    if (how == 3 && soon) pass(lanes_.deadline() - now_);
    if (how == 4 && soon) pass(lanes_.deadline() - Duration(1) - now_);
  }

  void pass(Duration time) {
    time = std::max(time, Duration{});
    watch_.pass(lanes_, rule_.batch, time);
    now_ += time;
  }

  void act() {
    const std::uint32_t which = pick(36);
    if (which < 2) return open();
    if (which < 5) return attach();
    if (which < 17) return cut();
    if (history_.workers.empty()) return;
    const LaneId lane = some(history_.workers).first;
    if (which < 26) {
      give_back(lane);
    } else if (which == 26 && one_in(2)) {
      if (one_in(4))
        cut(lane);
      else if (!poison_)
        lose(lane);
    } else if (which == 27) {
      bye(lane);
    } else if (which == 28) {
      repeat(lane);
    } else if (which == 29) {
      come_late();
    } else if (which == 30 && one_in(4)) {
      if (!poison_) return_wrong(lane);
    } else if (which == 31 && one_in(8)) {
      extend_deadlines();
    } else if (which < 35) {
      if (!history_.streams.empty()) send_to_client(lane);
    } else {
      messages_.write_oldest(lanes_);
    }
  }

  void open() {
    if (draining_ || lanes_.streams() >= lanes_.capacity()) return;
    const StreamId id{++last_stream_};
    history_.streams[id].busy = now_;
    lanes_.open(id, now_);
  }

  void cut() {
    std::vector<StreamId> live;
    for (auto& [id, stream] : history_.streams)
      if (!stream.ended && stream.cut.size() - stream.batched < 8) live.push_back(id);
    if (!live.empty()) cut(some(live), one_in(10));
  }

  void cut(StreamId id, bool end) {
    auto& stream = history_.streams.at(id);
    Row row;
    row.seq = stream.cut.size();
    row.begin = 5 * row.seq;
    row.size = one_in(3) ? 0 : 5;
    row.gap = pick(3);
    if (one_in(3)) row.mark = pick(100);
    if (one_in(5)) row.flags = flag::last;
    if (row.seq == 0) row.flags |= flag::start;
    const bool begun = std::ranges::any_of(stream.cut, &Row::has_frames);
    if (!begun || one_in(20)) {
      row.flags |= flag::reset;
      row.reason = begun ? ResetReason::client : ResetReason::start;
    }
    if (end) row.flags |= flag::last | flag::end;
    if (end && one_in(3)) {
      row.flags |= flag::abort;
      row.size = 0;
    }
    stream.ended = end;
    stream.aborted = row.is(flag::abort);
    if (poison_ && one_in(12)) stream.poison.insert(row.seq);
    stream.cut.push_back(row);
    ReadyRow ready;
    ready.row = row;
    ready.arrived = ready.ready = now_;
    ready.notify_batched = row.seq % 2 == 0;
    ready.posts = messages_.cut(id, row.seq);
    watch_.add(id, now_);
    lanes_.add(id, ready);
  }

  void attach() {
    if (history_.workers.size() >= 4) return;
    const std::uint32_t credits = 1 + pick(3);
    const LaneId lane = lanes_.attach(credits, now_);
    auto& worker = history_.workers[lane];
    worker.credits = credits;
    worker.last_received = worker.answered = now_;
  }

  void send_message(LaneId lane, LaneHistory::WorkerSeen& worker) {
    lanes_.on_message(lane, now_);
    worker.last_received = now_;
  }

  void send_to_client(LaneId lane) {
    const StreamId id = some(history_.streams).first;
    if (!messages_.send(lanes_, history_, lane, id, pick(longest_message)) && !poison_) lose(lane);
  }

  void lose(LaneId lane, LossCause cause = LossCause::worker) {
    lanes_.lost(lane, cause, now_);
    history_.lose(lane, cause, now_);
  }

  // The service drops the worker for a reason unrelated to its rows.
  void cut(LaneId lane) {
    lose(lane, LossCause::service);
    history_.count("cut");
  }

  void bye(LaneId lane) {
    auto& worker = history_.workers.at(lane);
    if (!worker.leaving) worker.leaving = now_;
    lanes_.bye(lane, now_);
  }

  // This process does not run for a while.
  void extend_deadlines() {
    const Duration late = 1ms * pick(2000);
    pass(late);
    lanes_.extend_deadlines(late, now_);
    for (auto& [lane, worker] : history_.workers) {
      worker.last_received += late;
      if (!worker.held.empty())
        worker.answered = std::max(worker.answered, worker.held.front().closed);
      worker.answered += late;
    }
  }

  void drain() {
    draining_ = true;
    if (one_in(2)) give_up_ = now_ + 1ms * pick(500);
    lanes_.drain(give_up_);
  }

  static std::vector<Answer> answers_to(const std::vector<BatchRow>& rows) {
    std::vector<Answer> answers;
    for (const BatchRow& row : rows)
      answers.push_back(
          {Answer::Kind::text, LaneHistory::answer_to(row.stream, row.ready.row.seq)});
    return answers;
  }

  void give_back(LaneId lane) {
    auto& worker = history_.workers.at(lane);
    if (worker.held.empty()) return;
    const Batch& batch = worker.held.front();
    if (history_.is_poisonous(batch)) {
      history_.count("poisoned");
      return lose(lane);
    }
    std::vector<Answer> answers, marks;
    const bool answered = !one_in(4);
    if (answered) answers = answers_to(batch.framed), marks = answers_to(batch.marks);
    std::uint32_t room = 0;
    for (const auto& [id, other] : lanes_.lanes())
      if (!other.leaving()) room += other.batcher().free_slots();
    const auto given = lanes_.done(lane, batch.id, answers, marks, done_at(now_));
    LaneHistory::expect(given == Lanes::DoneResult::accepted, "a batch in order is taken");
    history_.give_back(lane, room, now_);
    read(answered);
  }

  // A batch is returned a second time, or by a lost worker: it is ignored.
  void repeat(LaneId lane) {
    const auto& done = history_.workers.at(lane).done;
    if (!done.empty()) expect_ignored(lane, some(done), "repeated");
  }
  void come_late() {
    if (history_.fenced.empty()) return;
    const auto [lane, batch] = some(history_.fenced);
    expect_ignored(lane, batch, "late");
  }
  void expect_ignored(LaneId lane, BatchId batch, const char* what) {
    const auto given = lanes_.done(lane, batch, {}, {}, done_at(now_));
    LaneHistory::expect(given == Lanes::DoneResult::repeated, "an answer counts once");
    expect_nothing();
    history_.count(what);
  }

  // The worker returns a wrong batch, or a wrong number of answers. It is dropped.
  void return_wrong(LaneId lane) {
    const auto& worker = history_.workers.at(lane);
    std::vector<BatchId> false_ids{BatchId{0}, BatchId{1'000'000}};
    for (const auto& [other, seen] : history_.workers)
      if (other != lane) false_ids.insert(false_ids.end(), seen.done.begin(), seen.done.end());
    if (worker.held.size() > 1) false_ids.push_back(worker.held.back().id);
    std::vector<Answer> answers, marks;
    BatchId batch = some(false_ids);
    if (!worker.held.empty() && one_in(2)) {
      batch = worker.held.front().id;
      auto& wrong = one_in(2) ? answers : marks;
      wrong.resize(
          1 + (&wrong == &answers ? worker.held.front().framed : worker.held.front().marks).size());
    }
    const auto given = lanes_.done(lane, batch, answers, marks, done_at(now_));
    LaneHistory::expect(given == Lanes::DoneResult::wrong, "a lie is seen");
    expect_nothing();
    history_.count("lied");
    lose(lane);
  }

  void expect_nothing() {
    const LaneEvents& events = lanes_.events();
    LaneHistory::expect(events.returned.empty() && events.finished.empty(),
                        "what is ignored changes nothing");
  }

  void read(bool answered = false) {
    const SortedEvents events(std::exchange(lanes_.events(), {}));
    watch_.read(events, now_);
    messages_.read(events);
    history_.read(events, answered, now_, give_up_);
  }

  // Applies all events that are due, as the hub does after each step, and checks the state.
  void settle() {
    read();
    if (lanes_.deadline() <= now_) lanes_.expire(now_);
    read();
    std::vector<LaneId> lanes;
    for (const auto& [lane, worker] : history_.workers) lanes.push_back(lane);
    for (LaneId lane : lanes)
      while (const Batch* batch = lanes_.next(lane, true, now_))
        history_.hand_over(lane, *batch, messages_.opened(*batch, lanes_.opened()), now_);
    read();
    history_.look(lanes_, now_);
  }

  // Every stream ends and every worker answers. No stream may be left after that.
  void finish() {
    lanes_.drain(give_up_ = Time::max());
    attach();
    for (auto& [id, stream] : history_.streams)
      if (!stream.ended) cut(id, true);
    for (int round = 0; round < 2000 && lanes_.streams() > 0; ++round) {
      settle();
      if (history_.workers.empty()) attach();
      std::vector<LaneId> lanes;
      for (auto& [lane, worker] : history_.workers) lanes.push_back(lane);
      for (LaneId lane : lanes) {
        if (!history_.workers.contains(lane)) continue;
        send_message(lane, history_.workers.at(lane));
        give_back(lane);
      }
      read();
      pass(1ms);
    }
    read();
    watch_.expect_little();
    LaneHistory::expect(lanes_.streams() == 0 && history_.streams.empty(),
                        "every stream comes to its end, with all its rows or dropped");
  }

  std::mt19937_64 random_;
  const bool poison_;  // workers die at some rows, and for no other reason
  const LanesRule rule_;
  Lanes lanes_;
  LaneHistory history_;
  QueueWatch watch_;
  MessageHistory messages_;
  Time now_{1h};
  Time give_up_ = Time::max();
  std::uint64_t last_stream_ = 0;
  bool draining_ = false;
};

}  // namespace millrace::test
