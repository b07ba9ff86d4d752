// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/lane_set.h"

#include <cassert>
#include <limits>

namespace millrace {

namespace {

// Of a lane that takes no new streams: behind all others.
constexpr auto no_room = std::numeric_limits<std::uint32_t>::max();

// Reuses the node, so that nothing is allocated.
void move(auto& order, auto& filed, auto key, LaneId id) {
  if (filed == key) return;
  auto node = order.extract({filed, id});
  assert(!node.empty());
  node.value().first = filed = key;
  order.insert(std::move(node));
}

LaneTotals totals_of(const Lane& lane) {
  return {.lanes = 1,
          .leaving = lane.leaving() ? 1u : 0u,
          .credits = lane.credits(),
          .batches = lane.held().size(),
          .handed = lane.rows_held(),
          .slots_used = lane.batcher().streams(),
          .slots_free = lane.leaving() ? 0 : lane.batcher().room()};
}

// Unsigned: a difference below zero wraps around and back.
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

FiledLane& LaneSet::add(const BatchRule& rule, std::uint32_t credits, Time now) {
  const LaneId id{next_++};
  FiledLane& lane = lanes_.try_emplace(id, id, rule, credits, now).first->second;
  streams_.emplace(lane.filed_streams, id);
  due_.emplace(lane.filed_due, id);
  oldest_.emplace(lane.filed_oldest, id);
  mark(lane);
  return lane;
}

FiledLane* LaneSet::find(LaneId id) {
  const auto found = lanes_.find(id);
  return found == lanes_.end() ? nullptr : &found->second;
}

const FiledLane* LaneSet::find(LaneId id) const {
  const auto found = lanes_.find(id);
  return found == lanes_.end() ? nullptr : &found->second;
}

void LaneSet::erase(FiledLane& lane) {
  const LaneId id = lane.id();
  streams_.erase({lane.filed_streams, id});
  due_.erase({lane.filed_due, id});
  oldest_.erase({lane.filed_oldest, id});
  replace(totals_, lane.filed_totals, {});
  lanes_.erase(id);
}

void LaneSet::file(FiledLane& lane) {
  const LaneId id = lane.id();
  const std::size_t held = lane.held().size();
  move(streams_, lane.filed_streams, lane.leaving() ? no_room : lane.batcher().streams(), id);
  move(oldest_, lane.filed_oldest, held > 0 ? lane.held().front().closed : Time::max(), id);
  // A later deadline is looked up when this one comes first.
  if (const Time due = lane.due(patience_); due < lane.filed_due)
    move(due_, lane.filed_due, due, id);
  const LaneTotals totals = totals_of(lane);
  replace(totals_, lane.filed_totals, totals);
  lane.filed_totals = totals;
  if (lane.leaving() && held == 0 && lane.batcher().streams() == 0) emptied_.push_back(id);
}

void LaneSet::mark(FiledLane& lane) {
  file(lane);
  if (!std::exchange(lane.changed, true)) changed_.push_back(lane.id());
}

void LaneSet::take_changed(std::vector<LaneId>& into) {
  into.clear();
  into.swap(changed_);
  for (LaneId id : into)
    if (FiledLane* lane = find(id)) lane->changed = false;
}

void LaneSet::take_emptied(std::vector<LaneId>& into) {
  into.clear();
  into.swap(emptied_);
}

FiledLane* LaneSet::roomiest() {
  if (streams_.empty()) return nullptr;
  FiledLane& lane = lanes_.at(streams_.begin()->second);
  return !lane.leaving() && lane.batcher().room() > 0 ? &lane : nullptr;
}

Time LaneSet::due() {
  while (!due_.empty()) {
    const auto [filed, id] = *due_.begin();
    FiledLane& lane = lanes_.at(id);
    const Time due = lane.due(patience_);
    assert(due >= filed);
    if (due == filed) return due;
    move(due_, lane.filed_due, due, id);
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
