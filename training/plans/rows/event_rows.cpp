// SPDX-License-Identifier: Apache-2.0
#include "training/plans/rows/event_rows.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace millrace::training {
namespace {

using Kind = Event::Kind;

bool is_size(const InnerEvent& event) { return event.event.kind == Kind::size; }

// A stream keeps the size that its client requested, also under the rule `random`.
bool is_requested(const InnerEvent& event) {
  return is_size(event) && event.event.cause == Cause::client;
}

// A size event that a stream cut by this rule can have.
bool allows(const ChunkRule& rule, std::uint64_t body) {
  const SizeList& sizes = rule.sizes.sizes;
  if (!rule.spec.check_size(body)) return false;
  if (sizes.empty()) return rule.spec.left + body + rule.spec.right <= rule.width();
  const std::uint64_t longer = rule.first_body(rule.spec.size) - std::uint64_t{rule.spec.size};
  return sizes.contains(body) || sizes.contains(body - longer);
}

}  // namespace

EventRows::EventRows(const ChunkRule& rule, std::string_view name, std::vector<InnerEvent> events,
                     std::uint64_t frames)
    : events_(std::move(events)),
      frames_(frames),
      chunker_(rule.chunker_spec()),
      in_force_(rule.spec.size) {
  take_events(rule, name);
  chunker_.add({.kind = Kind::open});
  look_ahead();
  // The rows before it have no frames.
  ahead_.row.flags |= flag::start;
  marks_.clear();
  if (ahead_.row.has_frames()) advance();
}

// Leaves out the size events that do not count.
void EventRows::take_events(const ChunkRule& rule, std::string_view name) {
  const bool draws = rule.sizes.by == SizeRule::By::random &&
                     std::ranges::find_if(events_, is_requested) == events_.end();
  std::erase_if(events_, [&](const InnerEvent& event) {
    return is_size(event) && (draws || !allows(rule, event.event.count));
  });
  const bool chosen = std::ranges::find_if(events_, is_size) != events_.end();
  if (!rule.sizes.sizes.empty() && !chosen) choice_.emplace(rule, name);
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

bool EventRows::next(CutRow& cut) {
  std::optional<Row> row = chunker_.next();
  while (!row) {
    // Rows that a gap cuts are before the gap; later rows are after it.
    skipped_ += std::exchange(gap_, 0);
    if (!feed()) return false;
    row = chunker_.next();
  }
  cut.row = *row;
  cut.frame = row->begin - skipped_;
  if (choice_) {
    if (row->has_frames()) {
      ++chosen_;
      begins_ = true;
    }
    begins_ = progress_.cut(*row) != SegmentProgress::Began::nothing || begins_;
  }
  return true;
}

// Adds the next event. False: the stream has ended.
bool EventRows::feed() {
  if (chunker_.ended()) return false;
  if (const auto size = size_event()) {
    add(*size);
    return true;
  }
  const bool more = next_event_ < events_.size();
  const std::uint64_t until = more ? std::min(events_[next_event_].frame, frames_) : frames_;
  if (fed_ < until) {
    // A size is due after each row, so no event may give two.
    const std::uint64_t rest = until - fed_;
    const std::uint64_t count = choice_ ? std::min(rest, chunker_.frames_until_next()) : rest;
    fed_ += count;
    add({.kind = Kind::frames, .count = count});
  } else {
    add(more ? events_[next_event_++].event : Event{.kind = Kind::end});
  }
  return true;
}

void EventRows::add(const Event& event) {
  if (event.kind == Kind::gap) gap_ = event.count;
  chunker_.add(event);
  if (choice_) begins_ = progress_.added(event) != SegmentProgress::Began::nothing || begins_;
}

std::optional<Event> EventRows::size_event() {
  if (!choice_ || !std::exchange(begins_, false)) return std::nullopt;
  const std::uint32_t body = choice_->body(chosen_, progress_.first_of_run());
  if (body == in_force_) return std::nullopt;
  in_force_ = body;
  return Event{.kind = Kind::size, .cause = Cause::drawn, .count = body};
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
