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
  std::size_t leaving = 0;  // lanes whose worker said Bye
  std::size_t credits = 0;
  std::size_t batches = 0;  // handed over and not done
  std::size_t handed = 0;   // rows in these batches
  std::size_t slots_used = 0;
  std::size_t slots_free = 0;  // of lanes that stay
  bool operator==(const LaneTotals&) const = default;
};

// A lane, and how LaneSet has filed it. Only LaneSet touches what is filed.
struct FiledLane : Lane {
  using Lane::Lane;

  Time filed_due = Time::max();
  std::uint32_t filed_streams = 0;
  Time filed_oldest = Time::max();
  LaneTotals filed_totals;
  bool changed = false;
};

// The lanes of a pipeline. Keeps them in order of what Lanes asks for at every event, so that no
// event costs O(lanes): free slots, the next deadline, the oldest batch, and sums.
//
// Every change of a lane must be followed by file() or mark() before the set is asked again. Two
// kinds of change need neither: heard() and shift(), which only put off a deadline.
//
// Confined to one thread. Everything is O(log lanes) unless said otherwise.
class LaneSet {
 public:
  explicit LaneSet(const Patience& patience) : patience_(patience) {}
  LaneSet(const LaneSet&) = delete;
  LaneSet& operator=(const LaneSet&) = delete;

  FiledLane& add(const BatchRule& rule, std::uint32_t credits, Time now);
  // Null for a lane that is gone.
  FiledLane* find(LaneId id);
  const FiledLane* find(LaneId id) const;
  void erase(FiledLane& lane);
  const std::map<LaneId, FiledLane>& all() const { return lanes_; }
  std::map<LaneId, FiledLane>& all() { return lanes_; }

  void file(FiledLane& lane);
  // As file(). The lane also appears in the next take_changed().
  void mark(FiledLane& lane);
  // Replaces `into` by the lanes marked since the last call, each once. Some may be gone.
  void take_changed(std::vector<LaneId>& into);
  // Replaces `into` by the leaving lanes that have become empty since the last call.
  void take_emptied(std::vector<LaneId>& into);

  // The lane that takes the next stream: of those that stay, the one with the most free slots, of
  // several the oldest lane. Null if none has a free slot. O(1).
  FiledLane* roomiest();

  // The earliest Lane::due(); Time::max() if there is none. Amortized over the changes of lanes.
  Time due();
  // Lanes that may be due at `now`, in the order of their deadlines. O(such lanes).
  std::vector<LaneId> due_until(Time now) const;

  // When the oldest batch that is not done was closed; Time::max() if there is none. O(1).
  Time oldest() const { return oldest_.empty() ? Time::max() : oldest_.begin()->first; }
  const LaneTotals& totals() const { return totals_; }

 private:
  template <class Key>
  using Order = std::set<std::pair<Key, LaneId>>;

  const Patience patience_;
  std::map<LaneId, FiledLane> lanes_;
  std::uint64_t next_ = 1;
  Order<std::uint32_t> streams_;  // of lanes that stay
  Order<Time> due_;               // an entry may be earlier than the lane's deadline, never later
  Order<Time> oldest_;
  LaneTotals totals_;
  std::vector<LaneId> changed_, emptied_;
};

}  // namespace millrace
