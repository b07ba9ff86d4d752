// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/lane_gauges.h"

#include <algorithm>
#include <cstdint>

namespace millrace {

void update_gauges(const Lanes& lanes, const BatchRule& rule, LaneStats& stats) {
  const LaneTotals& totals = lanes.totals();
  const auto value = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  stats.workers.set(value(totals.lanes));
  stats.in_flight.set(value(totals.batches));
  stats.oldest.set(totals.batches > 0 ? to_wire(lanes.oldest_batch()) : 0);
  stats.slots[SlotState::used].set(value(totals.slots_used));
  stats.slots[SlotState::free].set(value(totals.slots_free));
  stats.received.set(static_cast<std::int64_t>(lanes.rows_received()));
  stats.pending.set(value(lanes.pending()));
  stats.items[LaneQueue::batch].set(value(lanes.rows_waiting()));
  stats.items[LaneQueue::worker].set(value(totals.handed));
  stats.capacity[LaneQueue::batch].set(
      value(std::max<std::size_t>(totals.lanes, 1) * rule.slots * max_ready_rows));
  stats.capacity[LaneQueue::worker].set(
      value(totals.credits * (std::size_t{rule.rows} + rule.slots)));
}

}  // namespace millrace
