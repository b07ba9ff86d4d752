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

// How long a lane trusts its worker.
struct Patience {
  Duration silence;       // nothing heard, not even a heartbeat
  Duration answer;        // after hand-over, or after the answer before it, whichever is later
  Duration first_answer;  // the same before its first answer: models compile
};

// One worker's share of a pipeline: its slots and waiting rows, the batches it holds, and what is
// known of its health. Pure: time comes in as `now`.
//
// Confined to one thread.
class Lane {
 public:
  Lane(LaneId id, const BatchRule& rule, std::uint32_t credits, Time now);

  LaneId id() const { return id_; }
  Batcher& batcher() { return batcher_; }
  const Batcher& batcher() const { return batcher_; }

  // Closes the next batch, when one is due, and holds it until it is finished; the pointer is
  // good until then. Null without credit or slab, or without a batch that is due.
  Batch* close(BatchId id, bool has_slab, Time now);
  // A worker that has a suspect's batch gets no other, and it gets that one when it has no other:
  // it can die of no other row.
  bool has_credit() const {
    return held_.size() < credits_ && (held_.empty() || !held_.back().is_trial());
  }
  // There was no slab when close() was called last.
  bool is_without_slab() const { return without_slab_.has_value(); }
  // Since when a batch would close, were there a slab for it, as seen by close(); nullopt: none.
  std::optional<Time> slab_wanted() const {
    return without_slab_ ? without_slab_->batch_since : std::nullopt;
  }
  std::uint32_t credits() const { return credits_; }

  // Whether `id` is the batch to be done next, was done here already, or neither. Only the last
  // ones done are remembered, as many as a worker can have credits.
  enum class Order : std::uint8_t { next, again, wrong };
  Order order_of(BatchId id) const;
  // Batches not done, oldest first.
  const std::deque<Batch>& held() const { return held_; }
  // Rows in these batches.
  std::size_t rows_held() const { return rows_held_; }
  // Takes the oldest batch out; give it back with reuse() so that its memory serves again.
  Batch finish(Time now);
  void reuse(Batch batch);

  void heard(Time now) { heard_ = now; }
  // Puts off the worker's deadlines by `late`, the time for which this process did not run before
  // `now`. A wait that began within that time begins at `now`.
  void shift(Duration late, Time now);

  // It takes no new streams. It keeps its own until their segments end, and at most until `until`.
  void leave(Time until);
  bool leaving() const { return keeps_until_.has_value(); }
  // The clock has reached `until`: its streams may move at any time. Returns whether this is a
  // change.
  bool release(Time now);
  bool released() const { return released_; }

  // When the next batch is due by the clock; Time::max() without credit, slab or rows.
  Time batch_deadline() const {
    return has_credit() && !without_slab_ ? batcher_.deadline(held_.empty()) : Time::max();
  }
  // From when on the worker counts as lost if nothing more is heard of it.
  Time lost_at(const Patience& patience) const;
  // The earliest of these two and of release().
  Time due(const Patience& patience) const;
  // Why it counts as lost by now, in words. Requires: lost_at() is not later than `now`.
  std::string why_lost(const Patience& patience, Time now) const;

 private:
  std::optional<Batcher::Choice> next(Time now) const {
    return has_credit() ? batcher_.next(now, held_.empty()) : std::nullopt;
  }
  Duration answer_wait(const Patience& patience) const {
    return done_.empty() ? patience.first_answer : patience.answer;
  }

  const LaneId id_;
  const std::uint32_t credits_;
  Batcher batcher_;
  std::deque<Batch> held_;
  std::size_t rows_held_ = 0;
  std::vector<Batch> spare_;
  Time heard_;
  Time answer_since_;                // since when the oldest batch's answer is awaited
  Ring<BatchId> done_;               // the last ones
  std::optional<Time> keeps_until_;  // nullopt while it stays
  bool released_ = false;
  struct WithoutSlab {
    Time since;  // the caller of close() has had none
    std::optional<Time> batch_since = {};
  };
  std::optional<WithoutSlab> without_slab_;
};

}  // namespace millrace
