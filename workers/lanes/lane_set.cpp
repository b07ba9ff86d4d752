// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/lane_set.h"

#include <cassert>
#include <limits>

namespace millrace {

namespace {

// The key of a lane that takes no new streams.
constexpr auto after_all_others = std::numeric_limits<std::uint32_t>::max();

// Reuses the node, so that it does not allocate.
void move_entry(auto& order, auto& indexed, auto key, LaneId id) {
  if (indexed == key) return;
  auto node = order.extract({indexed, id});
  assert(!node.empty());
  node.value().first = indexed = key;
  order.insert(std::move(node));
}

LaneTotals totals_of(const Lane& lane) {
  return {.lanes = 1,
          .leaving = lane.leaving() ? 1u : 0u,
          .credits = lane.credits(),
          .batches = lane.held().size(),
          .handed = lane.rows_held(),
          .slots_used = lane.batcher().streams(),
          .slots_free = lane.leaving() ? 0 : lane.batcher().free_slots()};
}

// Unsigned arithmetic: a negative difference wraps around, and the sum wraps back.
void replace(LaneTotals& sum, const LaneTotals& old, const LaneTotals& fresh) {
  sum.lanes += fresh.lanes - old.lanes;
  sum.leaving += fresh.leaving - old.leaving;
  sum.credits += fresh.credits - old.credits;
  sum.batches += fresh.batches - old.batches;
  sum.handed += fresh.handed - old.handed;
  sum.slots_used += fresh.slots_used - old.slots_used;
  sum.slots_free += fresh.slots_free - old.slots_free;
}

}  // namespace

IndexedLane& LaneSet::add(const BatchRule& rule, std::uint32_t credits, Time now) {
  const LaneId id{next_++};
  IndexedLane& lane = lanes_.try_emplace(id, id, rule, credits, now).first->second;
  streams_.emplace(lane.indexed_streams, id);
  due_.emplace(lane.indexed_due, id);
  oldest_.emplace(lane.indexed_oldest, id);
  mark_changed(lane);
  return lane;
}

IndexedLane* LaneSet::find(LaneId id) {
  const auto found = lanes_.find(id);
  return found == lanes_.end() ? nullptr : &found->second;
}

const IndexedLane* LaneSet::find(LaneId id) const {
  const auto found = lanes_.find(id);
  return found == lanes_.end() ? nullptr : &found->second;
}

void LaneSet::erase(IndexedLane& lane) {
  const LaneId id = lane.id();
  streams_.erase({lane.indexed_streams, id});
  due_.erase({lane.indexed_due, id});
  oldest_.erase({lane.indexed_oldest, id});
  replace(totals_, lane.indexed_totals, {});
  lanes_.erase(id);
}

void LaneSet::update(IndexedLane& lane) {
  const LaneId id = lane.id();
  const std::size_t held = lane.held().size();
  move_entry(streams_, lane.indexed_streams,
             lane.leaving() ? after_all_others : lane.batcher().streams(), id);
  move_entry(oldest_, lane.indexed_oldest, held > 0 ? lane.held().front().closed : Time::max(), id);
  // Deadlines move to a later time often. due() corrects such a key when it is the earliest.
  if (const Time due = lane.due(timeouts_); due < lane.indexed_due)
    move_entry(due_, lane.indexed_due, due, id);
  const LaneTotals totals = totals_of(lane);
  replace(totals_, lane.indexed_totals, totals);
  lane.indexed_totals = totals;
  if (lane.leaving() && lane.is_empty()) emptied_.push_back(id);
}

void LaneSet::mark_changed(IndexedLane& lane) {
  update(lane);
  if (!std::exchange(lane.changed, true)) changed_.push_back(lane.id());
}

void LaneSet::take_changed(std::vector<LaneId>& into) {
  into.clear();
  into.swap(changed_);
  for (LaneId id : into)
    if (IndexedLane* lane = find(id)) lane->changed = false;
}

void LaneSet::take_emptied(std::vector<LaneId>& into) {
  into.clear();
  into.swap(emptied_);
}

IndexedLane* LaneSet::lane_for_stream() {
  if (streams_.empty()) return nullptr;
  IndexedLane& lane = lanes_.at(streams_.begin()->second);
  return !lane.leaving() && lane.batcher().free_slots() > 0 ? &lane : nullptr;
}

Time LaneSet::due() {
  while (!due_.empty()) {
    const auto [indexed, id] = *due_.begin();
    IndexedLane& lane = lanes_.at(id);
    const Time due = lane.due(timeouts_);
    assert(due >= indexed);
    if (due == indexed) return due;
    move_entry(due_, lane.indexed_due, due, id);
  }
  return Time::max();
}

std::vector<LaneId> LaneSet::due_until(Time now) const {
  std::vector<LaneId> lanes;
  for (const auto& [due, id] : due_) {
    if (due > now) break;
    lanes.push_back(id);
  }
  return lanes;
}

}  // namespace millrace
