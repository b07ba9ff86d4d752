// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/workers/lanes/sorted_events.h"
#include "workers/lanes/lanes.h"

namespace millrace::test {

// The number of times that each kind of event happened, to show that a test covers all kinds.
using Tally = std::map<std::string, int>;

// The history of a pipeline's lanes: the rows of streams, the batches of each worker, and the
// answers. Checks after every step, by this history alone, that Lanes keeps its guarantees.
class LaneHistory {
 public:
  LaneHistory(const LanesRule& rule, Tally& tally) : rule_(rule), tally_(tally) {}

  struct StreamSeen {
    std::vector<Row> cut;
    std::size_t next = 0;  // the row that is handed over next
    std::size_t done = 0;
    std::size_t batched = 0, to_notify = 0;
    std::set<std::uint64_t> handed;
    std::set<std::uint64_t> suspects;  // rows in the oldest batch of a lost worker, not done
    std::set<std::uint64_t> poison;    // rows at which every worker dies
    int failed = 0;                    // rows that failed in a trial
    Time busy;                         // when it was opened, or a worker last had rows of it
    std::optional<LaneId> worker;      // that had its last row
    bool reset_due = false;            // a worker lost its state, or released it
    bool may_move = false;             // a row was done after which it may leave its worker
    bool must_move = false;            // such a row was done while a slot was free
    bool ended = false, aborted = false, dropped = false;
  };
  struct WorkerSeen {
    std::uint32_t credits = 0;
    Time last_received, answered;
    bool has_answered = false;
    std::optional<Time> leaving;
    std::uint32_t streams = 0;  // at the last look()
    std::deque<Batch> held;
    std::vector<BatchId> done;
    std::map<Slot, StreamId> slots;
    std::map<StreamId, std::uint64_t> state;  // the last row with frames that it saw
  };

  std::map<StreamId, StreamSeen> streams;
  std::map<LaneId, WorkerSeen> workers;
  std::vector<std::pair<LaneId, BatchId>> fenced;  // batches of workers that were lost
  bool only_poison_kills = false;                  // no worker is lost otherwise

  static void expect(bool holds, const char* what) {
    if (!holds) FAIL(what);
  }
  void count(const char* what) { ++tally_[what]; }

  void hand_over(LaneId lane, const Batch& batch, std::span<const BatchRow* const> opened,
                 Time now) {
    WorkerSeen& worker = workers.at(lane);
    expect(std::exchange(last_batch_, number(batch.id)) < number(batch.id), "ids ascend");
    expect(worker.held.size() < worker.credits, "a batch needs a credit");
    expect(batch.framed.size() <= rule_.batch.rows,
           "a batch has at most batch.rows rows with frames");
    expect(batch.marks.size() <= rule_.batch.slots, "a batch has at most `slots` marker rows");
    expect_trial(worker, batch);
    std::vector<StreamId> expected, named;
    std::set<StreamId> in_tensor;
    for (const BatchRow& row : batch.framed) {
      expect(row.ready.row.has_frames(), "rows of the tensor have frames");
      const bool first = in_tensor.insert(row.stream).second;
      expect(first || !rule_.batch.stateful, "one row with frames per stream");
      see_row(lane, worker, row, expected, now);
    }
    for (const BatchRow& row : batch.marks) {
      expect(!row.ready.row.has_frames(), "marker rows have no frames");
      see_row(lane, worker, row, expected, now);
    }
    for (const BatchRow* row : opened) named.push_back(row->stream);
    expect(named == expected, "streams are opened with their first row here");
    worker.held.push_back(batch);
  }

  // A worker was lost: its rows are handed over again.
  void lose(LaneId lane, LossCause cause, Time now) {
    WorkerSeen& worker = workers.at(lane);
    for (const Batch& batch : worker.held) {
      fenced.emplace_back(lane, batch.id);
      const bool is_suspect = cause == LossCause::worker && &batch == &worker.held.front();
      const bool alone = batch.framed.size() + batch.marks.size() == 1;
      for (const auto* rows : {&batch.framed, &batch.marks})
        for (const BatchRow& row : *rows) {
          StreamSeen& stream = streams.at(row.stream);
          stream.next = std::min<std::size_t>(stream.next, row.ready.row.seq);
          stream.busy = now;
          if (!is_suspect) continue;
          const bool before = !stream.suspects.insert(row.ready.row.seq).second;
          if (before && alone) given_up_.insert({row.stream, row.ready.row.seq});
        }
    }
    workers.erase(lane);
    count("lost");
  }

  // True if a worker dies at this batch.
  bool is_poisonous(const Batch& batch) const {
    for (const auto* rows : {&batch.framed, &batch.marks})
      for (const BatchRow& row : *rows)
        if (streams.at(row.stream).poison.contains(row.ready.row.seq)) return true;
    return false;
  }

  // The worker returned its oldest batch while `room` slots were free.
  void give_back(LaneId lane, std::uint32_t room, Time now) {
    WorkerSeen& worker = workers.at(lane);
    const Batch batch = std::move(worker.held.front());
    worker.held.pop_front();
    worker.done.push_back(batch.id);
    worker.answered = now;
    worker.has_answered = true;
    for (const auto* rows : {&batch.framed, &batch.marks})
      for (const BatchRow& row : *rows) {
        const Row& at = row.ready.row;
        streams.at(row.stream).suspects.erase(at.seq);
        if (at.is(flag::end))
          std::erase_if(worker.slots, [&](auto& slot) { return slot.second == row.stream; });
        if (!worker.leaving || !at.is(flag::last)) continue;
        StreamSeen& stream = streams.at(row.stream);
        stream.may_move = true;
        stream.must_move |= !stream.ended && room >= batch.framed.size() + batch.marks.size();
      }
  }
  static std::string answer_to(StreamId stream, std::uint64_t seq) {
    return std::to_string(number(stream)) + "." + std::to_string(seq);
  }

  void read(const SortedEvents& events, bool answered, Time now, Time give_up) {
    for (LaneId lane : events.overdue) {
      expect(lost_at(workers.at(lane)) <= now, "a worker has the time that it has");
      lose(lane, LossCause::worker, now);
      count("overdue");
    }
    for (LaneId lane : events.left) {
      const WorkerSeen& worker = workers.at(lane);
      expect(worker.leaving && worker.held.empty(), "a worker leaves with nothing in hand");
      workers.erase(lane);
      count("left");
    }
    for (StreamId id : events.batched) ++streams.at(id).batched;
    for (const auto& done : events.done) see_done(done, answered, now);
    expect(given_up_.empty(), "a row fails when two workers were lost at it");
    for (const auto& dropped : events.dropped) see_dropped(dropped, now, give_up);
    for (StreamId id : events.finished) {
      const auto gone = streams.find(id);
      expect(gone != streams.end(), "a stream goes once");
      const StreamSeen& stream = gone->second;
      expect(stream.dropped || (stream.ended && stream.done == stream.cut.size()),
             "a stream goes when it is done to the end, or dropped");
      expect(stream.batched == stream.to_notify, "a row whose stream asks is batched once");
      streams.erase(gone);
    }
    for (const auto& [id, stream] : streams)
      expect(stream.failed < 2, "a stream ends with its second row that fails");
  }

  // Checks the state between two steps.
  void look(const Lanes& lanes, Time now) {
    std::size_t placed = 0;
    std::uint32_t room = 0;
    expect(lanes.lanes().size() == workers.size(), "lanes are the workers'");
    for (const auto& [id, lane] : lanes.lanes()) {
      WorkerSeen& worker = workers.at(id);
      placed += lane.batcher().streams();
      const std::uint32_t before = std::exchange(worker.streams, lane.batcher().streams());
      expect(!worker.leaving || worker.streams <= before, "a leaving worker gets no new streams");
      expect(!worker.leaving || worker.streams > 0 || !worker.held.empty(),
             "a leaving worker is released when it is empty");
      if (!worker.leaving) room += lane.batcher().free_slots();
      expect(lost_at(worker) > now, "a worker has no more time than it has");
      expect(lane.batch_deadline() > now, "a batch that is due is handed over");
    }
    expect(lanes.streams() == streams.size(), "a stream is there until it is gone");
    expect(lanes.waiting() == streams.size() - placed, "a stream has a slot, or waits");
    expect(lanes.waiting() == 0 || room == 0, "no stream waits while a slot is free");
    for (const auto& [id, lane] : lanes.lanes())
      if (room > 0 && has_kept_long(workers.at(id), now)) expect_kept(id, lane);
  }

  Time lost_at(const WorkerSeen& worker) const {
    const Time silent = worker.last_received + rule_.timeouts.silence;
    if (worker.held.empty()) return silent;
    const Duration due = worker.has_answered ? rule_.timeouts.answer : rule_.timeouts.first_answer;
    return std::min(silent, std::max(worker.held.front().closed, worker.answered) + due);
  }

 private:
  bool has_kept_long(const WorkerSeen& worker, Time now) const {
    return worker.leaving && now - *worker.leaving >= rule_.bye_wait;
  }

  void expect_kept(LaneId id, const Lane& lane) const {
    for (const StreamId holder : lane.batcher().holders()) {
      const StreamSeen& stream = streams.at(holder);
      const bool elsewhere = stream.worker != id && stream.done < stream.next;
      expect(stream.ended || elsewhere, "a leaving worker keeps streams no longer than bye_wait");
    }
  }

  // A suspect is handed over alone, to a worker that holds no other batch.
  void expect_trial(const WorkerSeen& worker, const Batch& batch) const {
    const auto suspects = [this](const Batch& in) {
      std::size_t count = 0;
      for (const auto* rows : {&in.framed, &in.marks})
        for (const BatchRow& row : *rows)
          count += streams.at(row.stream).suspects.count(row.ready.row.seq);
      return count;
    };
    expect(suspects(batch) == 0 || batch.framed.size() + batch.marks.size() == 1,
           "a suspect is alone in its batch");
    expect(suspects(batch) == 0 || worker.held.empty(),
           "a suspect waits until its worker has nothing else");
    expect(worker.held.empty() || suspects(worker.held.back()) == 0,
           "nothing is handed over behind a suspect");
  }

  void see_row(LaneId lane, WorkerSeen& worker, const BatchRow& batch_row,
               std::vector<StreamId>& opened, Time now) {
    StreamSeen& stream = streams.at(batch_row.stream);
    const Row& row = batch_row.ready.row;
    expect(row.seq == stream.next++, "rows are handed over in order, none skipped, none twice");
    expect(number(batch_row.slot) < rule_.batch.slots, "a slot is one of the worker's");
    const bool known = std::ranges::any_of(
        worker.slots, [&](auto& slot) { return slot.second == batch_row.stream; });
    const auto [slot, fresh] = worker.slots.try_emplace(batch_row.slot, batch_row.stream);
    expect(slot->second == batch_row.stream, "a slot is not shared");
    expect(fresh != known, "a stream keeps its slot");
    if (!known) opened.push_back(batch_row.stream);
    if (stream.worker && *stream.worker != lane) see_move(stream, now);
    if (stream.worker == lane)
      expect(!stream.must_move, "a stream leaves as soon as it may and there is room");
    stream.worker = lane;
    expect_unchanged(stream, row);
    expect_state(stream, worker, batch_row);
    stream.to_notify += stream.handed.insert(row.seq).second && batch_row.ready.notify_batched;
    stream.busy = now;
  }

  // The stream has moved: its state is lost. A worker that is still attached must have released it.
  void see_move(StreamSeen& stream, Time now) {
    const auto from = workers.find(*stream.worker);
    if (from != workers.end()) {
      expect(stream.may_move || has_kept_long(from->second, now), "a stream stays with its worker");
      for (const Batch& batch : from->second.held)
        for (const auto* rows : {&batch.framed, &batch.marks})
          for (const BatchRow& row : *rows)
            expect(&streams.at(row.stream) != &stream, "a stream is at one worker at a time");
      count("moved");
    }
    stream.reset_due = true;
    stream.may_move = stream.must_move = false;
  }

  static void expect_unchanged(const StreamSeen& stream, const Row& row) {
    const Row& cut = stream.cut.at(row.seq);
    constexpr auto reset = static_cast<std::uint8_t>(~flag::reset);
    expect(row.begin == cut.begin && row.size == cut.size && row.gap == cut.gap &&
               row.mark == cut.mark && row.left == cut.left && row.right == cut.right &&
               (row.flags & reset) == (cut.flags & reset),
           "a row is as it was cut");
    expect(!cut.is(flag::reset) || row.is(flag::reset), "a RESET stays");
  }

  // A row continues the state of its stream at the worker if it is there, and only then.
  static void expect_state(StreamSeen& stream, WorkerSeen& worker, const BatchRow& batch_row) {
    const Row& row = batch_row.ready.row;
    expect((row.reason == ResetReason::worker_lost) == stream.reset_due,
           "RESET(worker_lost) is where a state was lost, and nowhere else");
    expect(row.is(flag::reset) == (row.reason != ResetReason::none), "a RESET has a reason");
    if (!row.has_frames()) return;
    if (!row.is(flag::reset)) {
      std::uint64_t before = row.seq;
      while (before > 0 && !stream.cut[--before].has_frames()) {
      }
      const auto state = worker.state.find(batch_row.stream);
      expect(state != worker.state.end() && state->second == before,
             "a row continues the state of the row before it");
    }
    worker.state[batch_row.stream] = row.seq;
    stream.reset_due = false;
  }

  void see_done(const SortedEvents::Done& done, bool answered, Time now) {
    expect(streams.contains(done.stream), "nothing is done of a stream that is gone");
    StreamSeen& stream = streams.at(done.stream);
    expect(done.seq == stream.done++, "rows are done in order, each once");
    stream.busy = now;
    expect(stream.handed.contains(done.seq), "a row that is done was handed over");
    if (given_up_.erase({done.stream, done.seq}) > 0) {
      expect(done.answer.kind == Answer::Kind::error, "a row that fails in a trial is an error");
      stream.next = std::max<std::size_t>(stream.next, done.seq + 1);
      stream.suspects.erase(done.seq);
      ++stream.failed;
      count("given up");
      expect(!only_poison_kills || stream.poison.contains(done.seq), "only poison rows fail");
    } else {
      expect(done.answer.data == (answered ? answer_to(done.stream, done.seq) : ""),
             "an answer belongs to its row");
    }
  }

  void see_dropped(const SortedEvents::Dropped& dropped, Time now, Time give_up) {
    expect(streams.contains(dropped.stream), "a stream is dropped once");
    StreamSeen& stream = streams.at(dropped.stream);
    stream.dropped = true;
    for (const auto& [lane, worker] : workers)
      for (const Batch& batch : worker.held)
        for (const auto* rows : {&batch.framed, &batch.marks})
          for (const BatchRow& row : *rows)
            expect(row.stream != dropped.stream, "no stream is dropped that a worker has rows of");
    if (dropped.code == ErrorCode::worker_failed) {
      expect(stream.failed == 2, "a stream ends after its second row that fails");
      count("worker failed");
    } else if (dropped.code) {
      expect(*dropped.code == ErrorCode::no_worker, "a stream fails because it has no worker");
      expect(now - stream.busy >= rule_.worker_wait || now >= give_up,
             "a stream waits as long as it may");
      count("no worker");
    } else {
      expect(stream.aborted && stream.handed.empty(),
             "only rows of an aborted stream that no worker ever had are dropped");
      count("died early");
    }
  }

  const LanesRule rule_;
  Tally& tally_;
  std::uint64_t last_batch_ = 0;
  std::set<std::pair<StreamId, std::uint64_t>> given_up_;  // rows that must fail next
};

}  // namespace millrace::test
