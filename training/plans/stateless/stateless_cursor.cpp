// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/stateless_cursor.h"

#include <algorithm>
#include <cassert>

namespace millrace::training {

StatelessCursor::StatelessCursor(const StatelessEpoch& epoch, Rank rank, std::uint64_t step,
                                 std::uint64_t stride)
    : epoch_(epoch),
      division_(epoch.division(rank.world)),
      rank_(rank),
      step_(step),
      stride_(stride),
      groups_(std::max<std::uint64_t>(division_->steps(), 1),
              draw_key(epoch.options().seed, Purpose::buckets, epoch.epoch())) {
  assert(stride >= 1 && rank.rank < rank.world);
  for (const BatchGroup& group : division_->groups()) rows_.emplace_back(epoch, group);
}

// All ranks use the same group at a step. Each group comes as often as it has steps.
bool StatelessCursor::next(PlannedBatch& into) {
  if (step_ >= division_->steps()) return false;
  into.epoch = epoch_.epoch();
  into.step = step_;
  into.marks.clear();
  const auto& groups = division_->groups();
  const bool mixed = groups.size() > 1 && epoch_.options().shuffle;
  const auto [number, step] = division_->find(mixed ? groups_[step_] : step_);
  const BatchGroup& group = groups[number];
  std::uint64_t batch = step * rank_.world + rank_.rank;
  if (batch >= group.left_out) batch += group.left_out_count;
  const bool padding = batch >= group.batches.size();
  // A batch of padding has the shape of rank 0's batch.
  fill(number, padding ? step * rank_.world : batch, into);
  if (padding) into.framed.clear();
  step_ += stride_;
  return true;
}

void StatelessCursor::fill(std::size_t group, std::uint64_t batch, PlannedBatch& into) {
  const auto [begin, end] = division_->groups()[group].batches[batch];
  into.rows = static_cast<std::uint32_t>(end - begin);
  rows_[group].read(begin, end, into.framed);
  std::uint32_t widest = division_->groups()[group].least;
  for (const PlannedRow& planned : into.framed)
    widest = std::max(widest, epoch_.widths().columns(planned.row));
  into.width = epoch_.widths().width(widest);
  into.body = epoch_.widths().body(into.width);
}

}  // namespace millrace::training
