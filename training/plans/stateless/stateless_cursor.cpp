// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/stateless_cursor.h"

#include <algorithm>
#include <cassert>

namespace millrace::training {

StatelessCursor::StatelessCursor(const StatelessEpoch& epoch, Rank rank, std::uint64_t step,
                                 std::uint64_t stride)
    : epoch_(epoch),
      rank_(rank),
      step_(step),
      stride_(stride),
      steps_(epoch.steps(rank.world)),
      groups_(std::max<std::uint64_t>(steps_, 1),
              draw_key(epoch.options().seed, Purpose::buckets, epoch.epoch())),
      maker_(epoch.row_maker()) {
  assert(stride >= 1 && rank.rank < rank.world);
  for (const StatelessEpoch::Group& group : epoch.groups())
    orders_.emplace_back(group.items, epoch.shuffle(), group.key);
}

// All ranks use the same group at a step. Each group comes as often as it has batches.
StatelessCursor::Place StatelessCursor::drawn() const {
  const auto& groups = epoch_.groups();
  std::uint64_t number = groups.size() > 1 && epoch_.options().shuffle ? groups_[step_] : step_;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::uint64_t steps = epoch_.steps(groups[i], rank_.world);
    if (number < steps) return {i, number * rank_.world};
    number -= steps;
  }
  assert(false);
  return {};
}

bool StatelessCursor::next(PlannedBatch& into) {
  if (step_ >= steps_) return false;
  into.epoch = epoch_.epoch();
  into.step = step_;
  into.marks.clear();
  const Place place = drawn();
  const std::uint64_t batch = place.batch + rank_.rank;
  const bool padding = batch >= epoch_.groups()[place.group].batches.size();
  // A batch of padding has the shape of rank 0's batch.
  fill(place, padding ? place.batch : batch, into);
  if (padding) into.framed.clear();
  step_ += stride_;
  return true;
}

void StatelessCursor::fill(const Place& place, std::uint64_t batch, PlannedBatch& into) {
  const auto [begin, end] = epoch_.groups()[place.group].batches[batch];
  orders_[place.group].read(begin, end, items_);
  into.rows = static_cast<std::uint32_t>(end - begin);
  maker_.make(items_, epoch_.groups()[place.group].items, into.framed);
  std::uint32_t widest = 0;
  for (const PlannedRow& planned : into.framed)
    widest = std::max(widest, epoch_.widths().columns(planned.row));
  into.width = epoch_.widths().width(widest);
  into.body = epoch_.widths().body(into.width);
}

}  // namespace millrace::training
