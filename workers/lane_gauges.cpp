// SPDX-License-Identifier: Apache-2.0
#include "workers/lane_gauges.h"

#include <cstdint>

namespace millrace {

void show(const Lanes& lanes, const BatchRule& rule, LaneStats& stats) {
  const LaneTotals& totals = lanes.totals();
  const auto value = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  stats.workers.set(value(totals.lanes));
  stats.in_flight.set(value(totals.batches));
  stats.oldest.set(totals.batches > 0 ? to_wire(lanes.oldest_batch()) : 0);
  stats.items[LaneQueue::batch].set(value(totals.waiting));
  stats.items[LaneQueue::worker].set(value(totals.handed));
  stats.capacity[LaneQueue::batch].set(value(totals.lanes * rule.slots * max_ready_rows));
  stats.capacity[LaneQueue::worker].set(
      value(totals.credits * (std::size_t{rule.rows} + rule.slots)));
}

}  // namespace millrace
