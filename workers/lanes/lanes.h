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
#include <utility>
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

// Results of the calls of Lanes that the caller passes on to streams and workers.
struct LaneEvents {
  std::vector<Returned> returned;  // messages for streams about their rows, in order
  std::vector<StreamId> finished;  // streams whose last row is done, or that were dropped:
                                   // their capacity is free
  // The messages of clients that done rows have carried: no worker receives them again.
  std::vector<std::pair<StreamId, const StreamPosts*>> posts;
  std::vector<LaneId> overdue;           // erased lanes, whose workers exceeded a timeout
  std::vector<std::string> why_overdue;  // the reason for each of these, in the same order
  std::vector<LaneId> left;              // erased lanes, whose workers sent Bye and became empty
  std::vector<std::pair<LaneId, std::vector<StreamId>>>
      lost;  // erased lanes of lost workers, also
             // the overdue ones, and their streams

  void clear();
};

// The streams of a worker that leaves or is lost: those that have moved to another one, and those
// that have not: a leaving worker still has them, those of a lost one wait for a slot.
struct MovedStreams {
  std::size_t moved = 0, waiting = 0;
};

// The batch rule and the timeouts of a pipeline.
struct LanesRule {
  BatchRule batch;
  Duration worker_wait;  // longest wait of a stream for a slot
  Duration bye_wait;     // longest time that a leaving worker keeps a stream without a LAST row
  LaneTimeouts timeouts;
};

// The cause of a worker's loss.
enum class LossCause : std::uint8_t {
  worker,   // it died, hung or violated the protocol: a row may be the reason
  service,  // the service was short of memory, or its device failed: no row is the reason
};

// All lanes of one pipeline and their streams: which stream is in which lane, which stream waits
// for a slot, and what happens to rows if a worker leaves or is lost. A pure state machine: the
// time is the argument `now`, batches are the results of next(), everything else is in LaneEvents.
//
// Guarantees, for every order of calls:
//  - The rows of a stream are done in order, each once. If a worker is lost, the rows in its
//  batches
//    that are not done are handed over again.
//  - A row never continues a state that was lost. After a loss or a move, the rows of a stream
//    carry RESET(worker_lost), up to and including the first row with frames.
//  - The rows in the oldest unfinished batch of a lost worker become suspects. A suspect is handed
//    over alone (a trial), to a worker that holds no other batch until the trial is done. If that
//    worker is lost too, the row is done with an error. The second such row of a stream ends the
//    stream with `worker_failed`. If the service caused the loss, no row becomes a suspect and no
//    suspect fails.
//  - A pending row fails if its answer does not come within timeouts.answer, or if its worker is
//    lost. It is never handed over again. Its stream does not move to another worker meanwhile; at
//    a leaving worker, it hands over no further rows after `bye_wait`.
//
// Confined to one thread.
class Lanes {
 public:
  explicit Lanes(LanesRule rule);

  // Adds a stream. It gets a slot, or waits for one. Requires: the id was never used before.
  void open(StreamId stream, Time now);
  // Adds the next row of a stream. Ignored if the stream is gone: it may have failed meanwhile.
  void add(StreamId stream, ReadyRow row);

  // No client waits for the stream's results any more. It is dropped if it has no slot and no
  // worker ever had a row of it, now or when it loses its slot. Ignored if the stream is gone.
  void abandon(StreamId stream);

  // Adds the lane of a new worker.
  LaneId attach(std::uint32_t credits, Time now);
  // The worker sent a message. Ignored if the lane is gone.
  void on_message(LaneId lane, Time now);
  // Moves the deadlines of workers and of waiting streams by `late`, the time before `now` in which
  // this process did not run.
  void extend_deadlines(Duration late, Time now);
  // The worker sent Bye: it takes no new streams, and its streams move to other lanes. A stream
  // moves at once if the worker had no row of it, otherwise at its next LAST row, or at any row
  // after `bye_wait`. Returns its streams. Ignored if the lane is gone.
  MovedStreams bye(LaneId lane, Time now);
  // The streams of a lane since its bye(). Those that have ended are in neither number.
  MovedStreams leaving_streams(LaneId lane) const;
  // The worker is lost: erases its lane. Ignored if the lane is gone.
  void lost(LaneId lane, LossCause cause, Time now);

  // Closes the lane's next batch if one is due and the lane has a credit and a slab; null
  // otherwise. The lane holds the batch until it is done; the pointer is valid until then.
  Batch* next(LaneId lane, bool has_slab, Time now);
  // When the wait of a due batch for a slab began, as of the last next(); nullopt if no batch waits
  // for one.
  std::optional<Time> slab_needed_since(LaneId lane) const;
  // The lane has a free slab. If the last next() was without one, the lane counts as changed.
  // Ignored if the lane is gone.
  void slab_freed(LaneId lane);
  // Rows of the last batch of next() that are the first of their streams at this worker, with the
  // room for messages to the stream's client.
  struct Opened {
    const BatchRow* row;
    std::uint32_t room;
  };
  std::span<const Opened> opened() const { return opened_; }

  // A worker returned a batch, with one answer for each framed row or without any, and the same for
  // its marker rows. Moves from the answers. `at` has the instants from `copied` to `done`; `done`
  // is the present time. A row whose answer is `pending` is done when answer() follows; rows behind
  // it are done after it.
  //  - repeated: the batch is done already, or the lane is gone. Nothing changed.
  //  - wrong: not the lane's oldest batch, or a wrong number of answers. Nothing changed, and the
  //    caller must disconnect the worker.
  enum class DoneResult : std::uint8_t { accepted, repeated, wrong };
  DoneResult done(LaneId lane, BatchId batch, std::span<Answer> answers,
                  std::span<Answer> mark_answers, const Instants& at);

  // The answer of a worker to a pending row. Moves from it. False: the row is not pending at this
  // worker (any more): ignored.
  bool answer(LaneId lane, StreamId stream, std::uint64_t seq, Answer& answer, Time now);

  // A worker sent a message for the client of a stream. `seq` is the number of the newest row that
  // it had of the stream. Moves from the message.
  //  - late: the stream is gone or has no row at this worker; or the lane is gone. Ignored.
  //  - wrong: the stream has no such row, or no room for the message (base/message_room.h).
  //    Ignored, and the caller must disconnect the worker.
  enum class SendResult : std::uint8_t { accepted, late, wrong };
  SendResult send(LaneId lane, StreamId stream, std::uint64_t seq, Answer& message);
  // Messages to the stream's client were written, which had used this many bytes of its room.
  // Returns the lane of the worker that has the room again; nullopt if the stream is gone or no
  // worker has a row of it.
  std::optional<LaneId> free_room(StreamId stream, std::uint32_t bytes);

  // True if the stream is at this lane: its worker had a row of it.
  bool serves(LaneId lane, StreamId stream);
  std::size_t pending() const { return pending_.size(); }

  // A stream with this number of pending rows, of rows from the first of them on, or of bytes in
  // the answers to these hands over no further rows. Rows that are in batches then may become
  // pending too.
  static constexpr std::uint32_t max_pending_rows = 8;
  static constexpr std::size_t max_due_rows = 128, max_due_bytes = std::size_t{64} << 10;
  // An answer behind a pending row becomes an error if it makes these answers longer.
  static constexpr std::size_t longest_due = std::size_t{16} << 20;

  // The service stops: batches close as soon as they have a row, and no stream waits for a slot
  // longer than until `wait_limit`.
  void drain(Time wait_limit);

  // When expire() or next() is due if nothing happens before; Time::max() if never.
  Time deadline();
  // Applies the deadlines: streams that waited too long fail, workers that exceeded a timeout are
  // lost, and streams that a leaving worker has kept for `bye_wait` move.
  void expire(Time now);
  // Replaces `into` by the lanes that changed since the last call, each once: only for these can
  // the results of next() and slab_needed_since() be different. Some may be gone.
  void take_changed(std::vector<LaneId>& into) { lanes_.take_changed(into); }

  // Streams that all lanes together have slots for: slots × lanes that are not leaving, at least
  // one lane's slots. O(1).
  std::uint64_t capacity() const;
  std::size_t streams() const { return streams_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  // Rows passed to add() since the start, and rows in no batch, also of streams that wait for a
  // slot. O(1), both.
  std::uint64_t rows_received() const { return rows_received_; }
  std::size_t rows_waiting() const { return rows_ - totals().handed; }
  // True if the lane's worker sent Bye. False if the lane is gone.
  bool leaving(LaneId lane) const;
  // O(1).
  const LaneTotals& totals() const { return lanes_.totals(); }
  // When the oldest batch that is not done closed; Time::max() without batches. O(1).
  Time oldest_batch() const { return lanes_.oldest(); }
  const std::map<LaneId, IndexedLane>& lanes() const { return lanes_.all(); }

  // The streams that a lane of events().lost had, as far as they are not gone.
  MovedStreams moved_from(LaneId lost) const;

  // Filled by the calls above. The caller clears them after it has read them.
  LaneEvents& events() { return events_; }

 private:
  // Order of the streams that wait: by the start of the wait, then by the age of the first row.
  using WaitKey = std::tuple<Time, Time, StreamId>;

  // A row that was in a batch that is done, and waits for its own answer or for those before it.
  struct Due {
    RowDone done;
    std::optional<Time> pending_since;  // nullopt: it has its answer
  };
  struct PendingRow {
    Time since;
    StreamId stream;
    std::uint64_t seq;
    auto operator<=>(const PendingRow&) const = default;
  };

  struct Stream {
    StreamId id;
    IndexedLane* lane = nullptr;      // where its rows go; null while it waits for a slot
    Slot slot{};                      // in `lane`
    IndexedLane* from = nullptr;      // its old lane, while that has rows of it in batches
    std::uint32_t handed = 0;         // rows in batches that are not done
    std::uint32_t room_used = 0;      // by messages that are not written to its client
    std::uint64_t newest = 0;         // number of its newest row that was handed over
    std::deque<Due> due;              // from its first pending row on
    std::uint32_t pending = 0;        // rows of `due` that are pending
    std::size_t due_bytes = 0;        // bytes of the answers in `due`
    bool stopped = false;             // too many rows are due: `held` has its further rows
    bool worker_saw_row = false;      // the worker of `lane` had a row of it
    bool any_worker_saw_row = false;  // any worker ever had a row of it
    bool reset_due = false;           // its rows carry RESET(worker_lost), up to one with frames
    bool ending = false;              // its END row was added
    bool failed = false;              // one of its rows failed in a trial
    bool abandoned = false;           // no client waits for its results
    WaitKey wait_key;                 // its key in waiting_
    std::deque<ReadyRow> held;        // rows in no batcher: it waits, moves, or is stopped
  };

  Stream* find(StreamId stream);
  // The lane whose worker has had rows of the stream and may have more; null without one.
  static IndexedLane* served_by(const Stream& stream);
  void settle();
  void assign(Stream& stream, IndexedLane& lane);
  void start_waiting(Stream& stream, Time now);
  void assign_waiting();
  void pass_on(Stream& stream, ReadyRow row);
  void pass_on_held(Stream& stream);
  void finish_row(IndexedLane& lane, const Batch& batch, const BatchRow& row, Answer answer,
                  Instants at);
  void deliver(Stream& stream, IndexedLane& lane, RowDone done, Time now);
  void add_due(Stream& stream, IndexedLane& lane, RowDone done);
  static bool must_stop(const Stream& stream);
  void stop_if_due(Stream& stream);
  static void limit(Stream& stream, Answer& answer);
  // The pending row with this number; null if it is not pending.
  static Due* due_row(Stream& stream, std::uint64_t seq);
  void resolve(Stream& stream, Due& due, Answer answer, Time now);
  void forget_pending(Stream& stream, const Due& due);
  void release(Stream& stream, Time now);
  void fail_pending(PendingRow row, std::string why, Time now);
  void fail_pending_of(const IndexedLane& lane, LossCause cause, Time now);
  void count_failed(StreamId stream);  // a row of it failed in a trial
  void expire_pending(Time now);
  void fail_trial(IndexedLane& lane, Batch& trial, Time now);
  void reclaim_batches(IndexedLane& lane, LossCause cause, Time now);
  void remove_lost(IndexedLane& lane, LossCause cause, Time now);
  void hold_waiting_rows(Stream& stream);
  bool may_move(const Stream& stream) const;
  void update_movable(const Stream& stream);
  void update_movable_of(const IndexedLane& lane);
  void move_streams();
  void move_away(Stream& stream, IndexedLane& to);
  void complete_move(Stream& stream, Time now);
  void end_empty_lanes();
  void remove(Stream& stream);
  void drop(Stream& stream);
  void drop_if_abandoned(Stream& stream);
  Time wait_limit_of(const WaitKey& waiting) const;

  const LanesRule rule_;
  LaneSet lanes_;
  std::unordered_map<StreamId, Stream> streams_;
  std::set<WaitKey> waiting_;   // streams without a slot
  std::set<StreamId> movable_;  // streams of leaving lanes that move as soon as a slot is free
  std::set<PendingRow> pending_;
  std::vector<Opened> opened_;
  std::vector<LaneId> emptied_;
  LaneEvents events_;
  std::uint64_t next_batch_ = 1;
  std::uint64_t rows_received_ = 0;
  std::size_t rows_ = 0;  // rows that are neither done nor dropped
  bool draining_ = false;
  Time wait_limit_ = Time::max();  // for all streams that wait
};

}  // namespace millrace
