// SPDX-License-Identifier: Apache-2.0
#include "training/plans/rows/event_rows.h"

#include <algorithm>
#include <limits>
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

bool opens(const InnerEvent& event) { return event.event.kind == Kind::open; }

}  // namespace

EventRows::EventRows(const ChunkRule& rule, std::string name, std::vector<InnerEvent> events,
                     std::uint64_t frames)
    : rule_(rule),
      name_(std::move(name)),
      events_(taken(std::move(events), rule)),
      frames_(frames) {
  begin_part();
  look_ahead();
  // The rows before it have no frames.
  const bool anew = !events_.empty() && opens(events_.front()) && events_.front().frame == 0 &&
                    events_.front().event.opened_anew();
  if (!anew) ahead_.row.flags |= flag::start;
  marks_.clear();
  if (ahead_.row.has_frames()) advance();
}

// Sizes are chosen here if the stream has none.
void EventRows::begin_part() {
  if (std::ranges::find_if(events_, is_size) != events_.end())
    cutter_.emplace(rule_);
  else
    cutter_.emplace(rule_, Decisions{.stream = name_});
  before_ = fed_;
  const auto behind = events_.begin() + static_cast<std::ptrdiff_t>(next_event_);
  const auto open = std::find_if(behind, events_.end(), opens);
  until_ = open == events_.end() ? std::numeric_limits<std::uint64_t>::max() : open->event.count;
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
  while (!cutter_->ended()) {
    const auto row = cutter_->next();
    if (!row) {
      feed();
    } else if (counts(*row)) {
      rows_ = row->seq + 1;
      cut = {.row = *row, .frame = before_ + cutter_->index(row->begin)};
      return true;
    }
  }
  return false;
}

// A marker row at the place ends a segment there, which the next part does not end again.
bool EventRows::counts(const Row& row) const {
  return row.begin < until_ || (row.begin == until_ && !row.has_frames());
}

// Adds the next event.
void EventRows::feed() {
  const bool more = next_event_ < events_.size();
  const std::uint64_t until = more ? std::min(events_[next_event_].frame, frames_) : frames_;
  if (fed_ < until) {
    std::uint64_t count = until - fed_;
    if (cutter_->decides()) count = std::min(count, cutter_->frames_until_next());
    fed_ += count;
    return cutter_->add({.kind = Kind::frames, .count = count});
  }
  if (!more) return cutter_->add(Event{.kind = Kind::end});
  Event event = events_[next_event_++].event;
  if (event.kind == Kind::open) {
    begin_part();
    event.rows = std::max(event.rows, rows_);  // another rule may have cut more rows
  }
  cutter_->add(event);
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
