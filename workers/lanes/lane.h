// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/ring.h"
#include "base/time.h"
#include "batcher/batch.h"
#include "batcher/batcher.h"

namespace millrace {

// The timeouts after which a worker counts as lost.
struct LaneTimeouts {
  Duration silence;       // since its last message; heartbeats count
  Duration answer;        // from hand-over or from the answer before it, whichever is later; also
                          // for the worker's device to finish with a slab
  Duration first_answer;  // the same, for its first answer: models compile
};

// One worker's share of a pipeline: its slots and waiting rows, the batches that it holds, and its
// deadlines. Pure: the time is the argument `now`.
//
// Confined to one thread.
class Lane {
 public:
  Lane(LaneId id, const BatchRule& rule, std::uint32_t credits, Time now);

  LaneId id() const { return id_; }
  Batcher& batcher() { return batcher_; }
  const Batcher& batcher() const { return batcher_; }

  // Closes the next batch if one is due, and holds it until finish(); the pointer is valid until
  // then. Null without a credit, a slab, or a batch that is due.
  Batch* close(BatchId id, bool has_slab, Time now);
  // A worker that holds a trial, or has its row pending, gets no other batch, and a trial closes
  // only if the worker has no batch and no pending row. So if that worker is lost, no other row can
  // be the reason.
  bool has_credit() const {
    return held_.size() < credits_ && (held_.empty() || !held_.back().is_trial()) &&
           !pending_trial_;
  }
  // True if there was no slab at the last close().
  bool is_without_slab() const { return without_slab_.has_value(); }
  // When close() first found a batch that was due but had no slab; nullopt if no batch waits for a
  // slab.
  std::optional<Time> slab_needed_since() const {
    return without_slab_ ? without_slab_->batch_since : std::nullopt;
  }
  std::uint32_t credits() const { return credits_; }

  // Whether `id` is the oldest batch that is held, a batch that is done, or neither. The last
  // max_credits batches that are done are remembered.
  enum class Order : std::uint8_t { next, repeated, wrong };
  Order order_of(BatchId id) const;
  // Batches that are handed over and not done, oldest first.
  const std::deque<Batch>& held() const { return held_; }
  // Rows in these batches, marker rows included.
  std::size_t rows_held() const { return rows_held_; }
  // Removes and returns the oldest batch. reuse() keeps its memory for later batches.
  // Requires: a batch is held.
  Batch finish(Time now);
  void reuse(Batch batch);

  // Rows whose answers follow later than their batch: the lane is not empty while it has some.
  // Call it after finish() of their batch.
  void add_pending(int rows) {
    pending_ += rows;
    pending_trial_ = pending_ > 0 && (pending_trial_ || finished_trial_);
  }
  bool has_pending_trial() const { return pending_trial_; }
  bool is_empty() const { return held_.empty() && batcher_.streams() == 0 && pending_ == 0; }

  // The worker sent a message.
  void on_message(Time now) { last_received_ = now; }
  // Moves the worker's deadlines by `late`, the time before `now` in which this process did not
  // run. A wait that began within that time begins at `now`.
  void extend_deadlines(Duration late, Time now);

  // The worker takes no new streams from now on. Each of its streams may stay until its segment
  // ends, at most until `until`.
  void leave(Time until);
  bool leaving() const { return keeps_until_.has_value(); }
  // Returns true once, when `now` has reached `until`: from then on its streams may move at any
  // row.
  bool release(Time now);
  bool released() const { return released_; }
  // Streams that have moved to other lanes. Only a leaving lane has any.
  std::size_t moved() const { return moved_; }
  void count_move() { ++moved_; }

  // When the clock makes the next batch due; Time::max() without a credit, a slab or rows.
  Time batch_deadline() const {
    return has_credit() && !without_slab_ ? batcher_.deadline(is_idle()) : Time::max();
  }
  // When the worker counts as lost if it sends nothing more.
  Time lost_at(const LaneTimeouts& timeouts) const;
  // The earliest of these two and of the time at which release() returns true.
  Time due(const LaneTimeouts& timeouts) const;
  // The reason why the worker counts as lost, as text. Requires: lost_at() <= now.
  std::string why_lost(const LaneTimeouts& timeouts, Time now) const;

 private:
  std::optional<Batcher::Choice> next(Time now) const {
    return has_credit() ? batcher_.next(now, is_idle()) : std::nullopt;
  }
  bool is_idle() const { return held_.empty() && pending_ == 0; }
  Duration answer_wait(const LaneTimeouts& timeouts) const {
    return done_.empty() ? timeouts.first_answer : timeouts.answer;
  }

  const LaneId id_;
  const std::uint32_t credits_;
  Batcher batcher_;
  std::deque<Batch> held_;
  std::size_t rows_held_ = 0;
  int pending_ = 0;
  bool finished_trial_ = false;  // the last batch that is done was a trial
  bool pending_trial_ = false;
  std::vector<Batch> spare_;
  Time last_received_;
  Time answer_since_;                // when the wait for the oldest batch's answer began
  Ring<BatchId> done_;               // the last batches that are done
  std::optional<Time> keeps_until_;  // nullopt if it is not leaving
  bool released_ = false;
  std::size_t moved_ = 0;
  struct WithoutSlab {
    Time since;                            // time of the first close() without a slab
    std::optional<Time> batch_since = {};  // slab_needed_since()
  };
  std::optional<WithoutSlab> without_slab_;
};

}  // namespace millrace
