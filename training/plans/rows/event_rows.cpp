// SPDX-License-Identifier: Apache-2.0
#include "training/plans/rows/event_rows.h"

#include <algorithm>
#include <utility>

namespace millrace::training {
namespace {

using Kind = Event::Kind;

bool is_size(const InnerEvent& event) { return event.event.kind == Kind::size; }

// A stream keeps the size that its client requested, also under the rule `random`.
bool is_requested(const InnerEvent& event) {
  return is_size(event) && event.event.cause == Cause::client;
}

// Without the size events that do not count.
std::vector<InnerEvent> taken(std::vector<InnerEvent> events, const ChunkRule& rule) {
  const bool draws = rule.sizes.by == SizeRule::By::random &&
                     std::ranges::find_if(events, is_requested) == events.end();
  std::erase_if(events, [&](const InnerEvent& event) {
    return is_size(event) && (draws || !rule.allows_body(event.event.count));
  });
  return events;
}

// Sizes are chosen here if the stream has none.
Cutter cutter_for(const std::vector<InnerEvent>& events, const ChunkRule& rule,
                  std::string_view name) {
  if (std::ranges::find_if(events, is_size) != events.end()) return Cutter(rule);
  return Cutter(rule, {.stream = name});
}

}  // namespace

EventRows::EventRows(const ChunkRule& rule, std::string_view name, std::vector<InnerEvent> events,
                     std::uint64_t frames)
    : events_(taken(std::move(events), rule)),
      frames_(frames),
      cutter_(cutter_for(events_, rule, name)) {
  look_ahead();
  // The rows before it have no frames.
  if (events_.empty() || !events_.front().event.opened_anew()) ahead_.row.flags |= flag::start;
  marks_.clear();
  if (ahead_.row.has_frames()) advance();
}

void EventRows::advance() {
  row_ = ahead_;
  marks_.clear();
  look_ahead();
}

// Reads up to the next row with frames.
void EventRows::look_ahead() {
  while (next(ahead_)) {
    if (ahead_.row.has_frames()) return;
    marks_.push_back(ahead_);
  }
  ahead_.row.size = 0;
}

// False: the stream has ended.
bool EventRows::next(CutRow& cut) {
  while (!cutter_.ended()) {
    if (const auto row = cutter_.next()) {
      cut = {.row = *row, .frame = cutter_.index(row->begin)};
      return true;
    }
    feed();
  }
  return false;
}

// Adds the next event.
void EventRows::feed() {
  const bool more = next_event_ < events_.size();
  const std::uint64_t until = more ? std::min(events_[next_event_].frame, frames_) : frames_;
  if (fed_ >= until)
    return cutter_.add(more ? events_[next_event_++].event : Event{.kind = Kind::end});
  std::uint64_t count = until - fed_;
  if (cutter_.decides()) count = std::min(count, cutter_.frames_until_next());
  fed_ += count;
  cutter_.add({.kind = Kind::frames, .count = count});
}

RowCounts count_rows(EventRows& rows) {
  RowCounts counts;
  for (; !rows.ended(); rows.advance()) {
    ++counts.framed;
    counts.frames += rows.row().row.size;
    counts.marker = !rows.marks().empty();
  }
  return counts;
}

}  // namespace millrace::training
