// SPDX-License-Identifier: Apache-2.0
#include "training/plans/rows/stream_steps.h"

#include <cassert>

namespace millrace::training {

using Way = StreamCutter::Way;

std::uint64_t StreamSteps::open(const StreamCutter& cutter, const StreamRef& stream,
                                std::uint64_t step) {
  cutter_ = &cutter;
  stream_ = stream;
  way_ = cutter.way(stream);
  ended_ = false;
  switch (way_) {
    case Way::whole:
    case Way::chunks:
    case Way::plain:
      counts_ = cutter.counts(stream);
      step_ = step;
      return step < counts_.framed ? 0 : end(step - counts_.framed);
    case Way::sized:
      next_.emplace(cutter.sized_rows(stream));
      step_ = step;
      return skip_sized(step);
    case Way::events:
      events_ = std::make_unique<EventRows>(cutter.event_rows(stream));
      return skip_events(step);
  }
  return 0;
}

std::uint64_t StreamSteps::advance(std::uint64_t steps) {
  assert(!ended_ && steps >= 1);
  step_ += steps;
  switch (way_) {
    case Way::whole:
    case Way::chunks:
    case Way::plain: return step_ < counts_.framed ? 0 : end(step_ - counts_.framed);
    case Way::sized: return skip_sized(steps - 1);
    case Way::events: return skip_events(steps);
  }
  return 0;
}

std::uint64_t StreamSteps::end(std::uint64_t lacking) {
  ended_ = true;
  events_.reset();
  return lacking;
}

std::uint64_t StreamSteps::skip_sized(std::uint64_t steps) {
  for (; steps > 0 && !next_->ended(); --steps) next_->advance();
  if (next_->ended()) return end(steps);
  sized_.row = next_->row();
  sized_.frame = sized_.row.begin;
  next_->advance();
  return 0;
}

std::uint64_t StreamSteps::skip_events(std::uint64_t steps) {
  for (; steps > 0 && !events_->ended(); --steps) events_->advance();
  return events_->ended() ? end(steps) : 0;
}

CutRow StreamSteps::row() const {
  assert(!ended_);
  if (way_ == Way::events) return events_->row();
  if (way_ == Way::sized) return sized_;
  const Row row = cutter_->row_at(stream_, counts_.framed, step_);
  return {.row = row, .frame = way_ == Way::whole ? 0 : row.begin};
}

Row StreamSteps::end_marker() const {
  Row row;
  row.seq = step_ + 1;
  row.begin = stream_.frames;
  row.flags = flag::last | flag::end;
  return row;
}

void StreamSteps::add_marks(std::uint32_t slot, std::vector<PlannedRow>& into) const {
  const auto add = [&](const CutRow& cut) {
    into.push_back({.stream = stream_.stream,
                    .frame = cut.frame,
                    .slot = slot,
                    .copy = stream_.copy,
                    .opens = false,
                    .row = cut.row});
  };
  if (way_ == Way::events) {
    for (const CutRow& mark : events_->marks()) add(mark);
    return;
  }
  const bool marker = way_ == Way::sized ? next_->ended() && next_->has_marker()
                                         : counts_.marker && step_ + 1 == counts_.framed;
  if (marker) add({.row = end_marker(), .frame = stream_.frames});
}

}  // namespace millrace::training
