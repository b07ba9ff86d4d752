// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateful/stateful_cursor.h"

#include <algorithm>
#include <cassert>

namespace millrace::training {

StatefulCursor::StatefulCursor(const StatefulEpoch& epoch, Rank rank, std::uint64_t step,
                               std::uint64_t stride)
    : epoch_(epoch), step_(step), stride_(stride), rows_(epoch.deal().slots() / rank.world) {
  assert(stride >= 1 && rank.rank < rank.world);
  // All ranks have equal shapes, so the width depends on the rows of all ranks.
  const bool all = rank.world > 1 && !epoch.widths().is_one();
  first_ = all ? std::size_t{rank.rank} * rows_ : 0;
  slots_.resize(all ? epoch.deal().slots() : rows_);
  for (std::uint32_t i = 0; Slot & slot : slots_) start(slot, all ? i++ : rank.rank * rows_ + i++);
}

void StatefulCursor::start(Slot& slot, std::uint32_t number) {
  slot.end = epoch_.deal().begin(number + 1);
  const auto position = epoch_.deal().at(number, step_);
  if (!position) return;
  slot.stream = position->stream;
  slot.steps.open(epoch_.cutter(), epoch_.stream(slot.stream), position->step);
}

void StatefulCursor::advance(Slot& slot) {
  std::uint64_t lacking = slot.steps.advance(stride_);
  while (slot.steps.ended() && ++slot.stream < slot.end) {
    lacking = slot.steps.open(epoch_.cutter(), epoch_.stream(slot.stream), lacking);
    slot.opens = true;
  }
}

bool StatefulCursor::next(PlannedBatch& into) {
  if (step_ >= epoch_.steps()) return false;
  into.epoch = epoch_.epoch();
  into.step = step_;
  into.rows = rows_;
  into.framed.clear();
  into.marks.clear();
  std::uint32_t widest = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.steps.ended()) continue;
    const CutRow cut = slot.steps.row();
    widest = std::max(widest, epoch_.widths().columns(cut.row));
    if (i - first_ < rows_) {
      const auto number = static_cast<std::uint32_t>(i - first_);
      into.framed.push_back({.stream = slot.steps.stream().stream,
                             .frame = cut.frame,
                             .slot = number,
                             .copy = slot.steps.stream().copy,
                             .opens = slot.opens,
                             .row = cut.row});
      slot.steps.add_marks(number, into.marks);
    }
    slot.opens = false;
    advance(slot);
  }
  into.width = epoch_.widths().width(widest);
  into.body = epoch_.widths().body(into.width);
  step_ += stride_;
  return true;
}

}  // namespace millrace::training
