// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "workers/lanes/lane.h"

namespace millrace {

// Sums over the lanes of a pipeline.
struct LaneTotals {
  std::size_t lanes = 0;
  std::size_t leaving = 0;  // lanes whose worker sent Bye
  std::size_t credits = 0;
  std::size_t batches = 0;  // batches that are handed over and not done
  std::size_t handed = 0;   // rows in these batches
  std::size_t slots_used = 0;
  std::size_t slots_free = 0;  // in lanes that are not leaving
  bool operator==(const LaneTotals&) const = default;
};

// A lane, and its keys in the indexes of LaneSet. Only LaneSet uses the keys.
struct IndexedLane : Lane {
  using Lane::Lane;

  Time indexed_due = Time::max();
  std::uint32_t indexed_streams = 0;
  Time indexed_oldest = Time::max();
  LaneTotals indexed_totals;
  bool changed = false;
};

// The lanes of a pipeline, with indexes for the questions that Lanes asks at every event: free
// slots, the next deadline, the oldest batch, and sums. No event takes O(lanes) time.
//
// Call update() or mark_changed() after every change of a lane, before the next question. Two kinds
// of change need neither, because they only move a deadline to a later time: on_message() and
// extend_deadlines().
//
// Confined to one thread. A call is O(log lanes) if its comment names no other cost.
class LaneSet {
 public:
  explicit LaneSet(const LaneTimeouts& timeouts) : timeouts_(timeouts) {}
  LaneSet(const LaneSet&) = delete;
  LaneSet& operator=(const LaneSet&) = delete;

  IndexedLane& add(const BatchRule& rule, std::uint32_t credits, Time now);
  // Null if the lane was erased.
  IndexedLane* find(LaneId id);
  const IndexedLane* find(LaneId id) const;
  void erase(IndexedLane& lane);
  const std::map<LaneId, IndexedLane>& all() const { return lanes_; }
  std::map<LaneId, IndexedLane>& all() { return lanes_; }

  // Updates the indexes after a change of the lane.
  void update(IndexedLane& lane);
  // The same. The lane is also in the next take_changed().
  void mark_changed(IndexedLane& lane);
  // Replaces `into` by the lanes that were marked since the last call, each once. Some of them may
  // be erased already.
  void take_changed(std::vector<LaneId>& into);
  // Replaces `into` by the leaving lanes that became empty since the last call: no batches, no
  // streams and no pending rows. A lane may be there twice, or be erased already.
  void take_emptied(std::vector<LaneId>& into);

  // The lane for the next stream: the one with the most free slots among the lanes that are not
  // leaving, and the oldest of several such lanes. Null if none has a free slot. O(1).
  IndexedLane* lane_for_stream();

  // The earliest Lane::due(); Time::max() without lanes. Amortized over the changes of lanes.
  Time due();
  // The lanes that may be due at `now`, in the order of their deadlines. O(these lanes).
  std::vector<LaneId> due_until(Time now) const;

  // When the oldest batch that is not done was closed; Time::max() without batches. O(1).
  Time oldest() const { return oldest_.empty() ? Time::max() : oldest_.begin()->first; }
  const LaneTotals& totals() const { return totals_; }

 private:
  template <class Key>
  using Order = std::set<std::pair<Key, LaneId>>;

  const LaneTimeouts timeouts_;
  std::map<LaneId, IndexedLane> lanes_;
  std::uint64_t next_ = 1;
  Order<std::uint32_t> streams_;  // by streams of the lane; leaving lanes come last
  Order<Time> due_;               // a key may be earlier than the lane's deadline, never later
  Order<Time> oldest_;            // by the time at which the lane's oldest batch closed
  LaneTotals totals_;
  std::vector<LaneId> changed_, emptied_;
};

}  // namespace millrace
