// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/answer.h"
#include "base/ids.h"
#include "base/instants.h"
#include "base/returned.h"
#include "base/time.h"
#include "batcher/batch.h"
#include "chunker/ready_row.h"
#include "workers/lanes/lane_set.h"

namespace millrace {

// What became of rows, streams and lanes, for their owners.
struct LaneEvents {
  std::vector<Returned> returned;  // what became of rows, for their streams, in order
  std::vector<StreamId> gone;      // streams whose room is free again: done to the end, or dropped
  std::vector<LaneId> overdue;     // lanes whose worker was given up by the clock; they are gone
  std::vector<std::string> why_overdue;  // of each of these, in their order
  std::vector<LaneId> left;  // lanes whose worker said Bye and that are empty; they are gone

  void clear();
};

// Times that a pipeline gives its streams and workers.
struct LanesRule {
  BatchRule batch;
  Duration worker_wait;  // how long a stream waits for a slot
  Duration bye_wait;     // how long a leaving worker keeps a stream that has no LAST row
  Patience patience;
};

// Who caused the loss of a worker.
enum class Blame : std::uint8_t {
  worker,   // it died, hung or broke the protocol: a row may be the reason
  service,  // the service had no memory for it, or its own device failed: no row is the reason
};

// All lanes of one pipeline and the streams in them: which stream is in which lane, what becomes
// of its rows when a worker leaves or is lost, which stream waits for a slot. A pure state
// machine: time comes in as `now`, batches go out by next(), everything else as LaneEvents.
//
// Promises, whatever the order of calls:
//  - the rows of a stream are done in order, each once; those handed over and not done when a
//    worker is lost are handed over again
//  - a row never continues a state that was lost: after a loss or a move a stream's rows carry
//    RESET(worker_lost) up to and including the first with frames
//  - the rows in the oldest unfinished batch of a lost worker are suspects. A suspect is handed
//    over alone, to a worker that has nothing else until it is answered. If its worker is lost over
//    it, it is done with an error. The second such row of a stream ends that stream with
//    `worker_failed`. Where the service caused the loss, rows stay what they were
//
// Confined to one thread.
class Lanes {
 public:
  explicit Lanes(LanesRule rule);

  // A stream wants a slot: it gets one, or waits for it. Ids are never used twice.
  void open(StreamId stream, Time now);
  // Its next row. A stream that is not known (it failed meanwhile) is ignored.
  void add(StreamId stream, ReadyRow row);

  LaneId attach(std::uint32_t credits, Time now);
  void heard(LaneId lane, Time now);
  // This process did not run for `late` before `now`: the deadlines of workers and of waiting
  // streams move by that much.
  void shift(Duration late, Time now);
  // The worker takes no new streams; each of its own moves away when it can.
  void bye(LaneId lane, Time now);
  // The worker's connection is gone. A lane that is not known is ignored.
  void lost(LaneId lane, Blame blame, Time now);

  // The lane's next batch, when one is due and the lane has a credit and a slab. The lane holds it
  // until it is done; the pointer is good until then.
  Batch* next(LaneId lane, bool has_slab, Time now);
  // Since when a batch waits for a slab alone, by the last call of next(); nullopt: none does.
  std::optional<Time> slab_wanted(LaneId lane) const;
  // A slab became free: call next() again if it was without one. A lane that is not known is
  // ignored.
  void slab_freed(LaneId lane);
  // Rows of the batch that next() gave last, whose streams this lane's worker had no row of before.
  std::span<const BatchRow* const> opened() const { return opened_; }

  // A worker gives a batch back, with an answer for each of its framed rows or none at all, and
  // likewise for its marker rows. Answers are moved from. `at` has the instants from `copied` to
  // `done`, which is now. `wrong`: not its oldest batch, or another number of answers; the worker
  // is to be cut, the call changed nothing.
  enum class Given : std::uint8_t { taken, repeated, wrong };
  Given done(LaneId lane, BatchId batch, std::span<Answer> answers, std::span<Answer> mark_answers,
             const Instants& at);

  // Nothing more is to come: batches close as soon as they have a row, and streams wait for a slot
  // no longer than until `give_up`.
  void drain(Time give_up);

  // When expire() or next() has something to do if nothing happens before.
  Time deadline();
  // Does what is due: streams that waited too long fail, workers that are overdue are lost, streams
  // that a leaving worker has kept for `bye_wait` move.
  void expire(Time now);
  // Replaces `into` by the lanes for which next() or slab_wanted() may answer otherwise than when
  // they were asked last: only these need to be asked again. Some may be gone. Each once.
  void take_changed(std::vector<LaneId>& into) { lanes_.take_changed(into); }

  // Streams that there is room for in all. O(1).
  std::uint64_t capacity() const;
  std::size_t streams() const { return streams_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  // Rows given to add(), ever; and those of them that wait for a batch, also while their stream
  // waits for a slot. O(1).
  std::uint64_t rows_received() const { return rows_received_; }
  std::size_t rows_waiting() const { return rows_ - totals().handed; }
  // Whether the lane's worker said Bye. False for a lane that is not known.
  bool leaving(LaneId lane) const;
  // O(1), both.
  const LaneTotals& totals() const { return lanes_.totals(); }
  Time oldest_batch() const { return lanes_.oldest(); }  // when it closed; Time::max(): none
  const std::map<LaneId, FiledLane>& lanes() const { return lanes_.all(); }

  // Filled by the calls above; whoever reads them clears them.
  LaneEvents& events() { return events_; }

 private:
  // Longest waiting first; of those that began to wait together, the one whose first row is oldest.
  using WaitKey = std::tuple<Time, Time, StreamId>;

  struct Stream {
    StreamId id;
    FiledLane* lane = nullptr;  // its rows go there; null while it waits for a slot
    Slot slot{};                // in `lane`
    FiledLane* from = nullptr;  // it moves, and rows of it are still in batches of this lane
    std::uint32_t handed = 0;   // rows in batches that are not done
    bool begun = false;         // the worker of `lane` has had a row of it
    bool had = false;           // any worker has had a row of it, ever
    bool reset_due = false;     // RESET(worker_lost), until a row with frames has carried it
    bool ending = false;        // its END row is here
    bool failed = false;        // a worker was lost over a row of it that was handed over alone
    WaitKey waiting;            // its place in waiting_
    std::deque<ReadyRow> held;  // rows in no batcher: it waits, or moves
  };

  Stream* find(StreamId stream);
  void settle();
  void place(Stream& stream, FiledLane& lane);
  void wait(Stream& stream, Time now);
  void place_waiting();
  void feed(Stream& stream, ReadyRow row);
  void feed_held(Stream& stream);
  void finish_row(FiledLane& lane, const Batch& batch, const BatchRow& row, Answer answer,
                  Instants at);
  void convict(FiledLane& lane, Batch& trial, Time now);
  void take_back_batches(FiledLane& lane, Blame blame, Time now);
  void take_back(FiledLane& lane, Blame blame, Time now);
  void hold_waiting_rows(Stream& stream);
  bool may_move(const Stream& stream) const;
  void review(const Stream& stream);
  void review_all(const FiledLane& lane);
  void move_free();
  void move_away(Stream& stream, FiledLane& to);
  void arrive(Stream& stream, Time now);
  void end_empty();
  void forget(Stream& stream);
  Time gives_up(const WaitKey& waiting) const;

  const LanesRule rule_;
  LaneSet lanes_;
  std::unordered_map<StreamId, Stream> streams_;
  std::set<WaitKey> waiting_;  // streams without a lane
  std::set<StreamId> free_;    // streams of leaving lanes that move as soon as there is room
  std::vector<const BatchRow*> opened_;
  std::vector<LaneId> emptied_;
  LaneEvents events_;
  std::uint64_t next_batch_ = 1;
  std::uint64_t rows_received_ = 0;
  std::size_t rows_ = 0;  // neither done nor dropped
  bool draining_ = false;
  Time give_up_ = Time::max();  // of all that wait
};

}  // namespace millrace
