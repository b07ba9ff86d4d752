// SPDX-License-Identifier: Apache-2.0
#include "workers/lane_gauges.h"

#include <algorithm>
#include <cstdint>

namespace millrace {

void show(const Lanes& lanes, const BatchRule& rule, LaneStats& stats) {
  std::size_t waiting = 0, handed = 0, most_waiting = 0, most_handed = 0;
  std::int64_t batches = 0;
  Time oldest = Time::max();
  for (const auto& [id, lane] : lanes.lanes()) {
    waiting += lane.batcher().waiting();
    most_waiting += std::size_t{rule.slots} * max_ready_rows;
    most_handed += std::size_t{lane.credits()} * (rule.rows + rule.slots);
    batches += static_cast<std::int64_t>(lane.held().size());
    for (const Batch& batch : lane.held()) {
      handed += batch.framed.size() + batch.marks.size();
      oldest = std::min(oldest, batch.closed);
    }
  }
  stats.workers.set(static_cast<std::int64_t>(lanes.lanes().size()));
  stats.in_flight.set(batches);
  stats.oldest.set(batches > 0 ? to_wire(oldest) : 0);
  stats.items[LaneQueue::batch].set(static_cast<std::int64_t>(waiting));
  stats.items[LaneQueue::worker].set(static_cast<std::int64_t>(handed));
  stats.capacity[LaneQueue::batch].set(static_cast<std::int64_t>(most_waiting));
  stats.capacity[LaneQueue::worker].set(static_cast<std::int64_t>(most_handed));
}

}  // namespace millrace
