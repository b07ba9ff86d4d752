// SPDX-License-Identifier: Apache-2.0
#include "workers/lane_gauges.h"

#include <cstdint>

namespace millrace {

namespace {

void set(Gauge& gauge, std::size_t value) { gauge.set(static_cast<std::int64_t>(value)); }

}  // namespace

void show(const Lanes& lanes, const BatchRule& rule, LaneStats& stats) {
  const LaneTotals& totals = lanes.totals();
  set(stats.workers, totals.lanes);
  set(stats.in_flight, totals.batches);
  stats.oldest.set(totals.batches > 0 ? to_wire(lanes.oldest_batch()) : 0);
  set(stats.items[LaneQueue::batch], totals.waiting);
  set(stats.items[LaneQueue::worker], totals.handed);
  set(stats.capacity[LaneQueue::batch], totals.lanes * rule.slots * max_ready_rows);
  set(stats.capacity[LaneQueue::worker], totals.credits * (std::size_t{rule.rows} + rule.slots));
}

}  // namespace millrace
