// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/event_join.h"

#include <limits>

namespace millrace::recording {
namespace {

using Kind = Event::Kind;

// The largest position that a Chunker accepts.
constexpr std::uint64_t most_position = std::uint64_t{1} << 53;

bool moves(const Event& event) { return event.kind == Kind::frames || event.kind == Kind::gap; }

bool ends(const Event& event) { return event.kind == Kind::end || event.kind == Kind::abort; }

bool has_legal_count(const Event& event, std::uint64_t position) {
  if (moves(event) && event.count > most_position - position) return false;
  if (event.kind == Kind::open) return event.count == position && event.rows <= most_position;
  if (event.kind == Kind::gap) return event.count >= 1;
  if (event.kind == Kind::size)
    return event.count >= 1 && event.count <= std::numeric_limits<std::uint32_t>::max();
  return true;
}

}  // namespace

EventJoin::Added EventJoin::add(std::uint32_t number, const Slice& slice, const std::string& why) {
  if (finished_ || number < next_number_) return Added::known;
  const auto place = place_in(slice);
  if (!place) return Added::contradicts;
  if (ended_ && place->event < slice.events.size()) return Added::contradicts;
  if (!legal(slice, place->event)) return Added::contradicts;
  if (!slice.events.empty()) at_ = slice.events.front().at;
  name_missing(number, slice, why);
  if (slice.first_event > next_event_) replace_missing(slice);
  take(slice, *place);
  next_number_ = std::uint64_t{number} + 1;
  return Added::joined;
}

// The first event of the slice that was not given yet. nullopt: the numbers of its events
// contradict its positions.
std::optional<EventJoin::Place> EventJoin::place_in(const Slice& slice) const {
  const std::uint64_t count = slice.events.size();
  if (slice.begin > most_position) return std::nullopt;
  if (slice.first_event > std::numeric_limits<std::uint64_t>::max() - count) return std::nullopt;
  if (slice.first_event > next_event_) {
    const bool forward = slice.begin >= position_ && !ended_;
    return forward && (slice.size != 0 || size_ == 0) ? std::optional(Place{}) : std::nullopt;
  }
  Place place;
  if (begins(slice)) return place;
  std::uint64_t position = slice.begin;
  for (; place.event < count && slice.first_event + place.event < next_event_; ++place.event) {
    const Event& event = slice.events[place.event].event;
    if (!has_legal_count(event, position)) return std::nullopt;
    if (moves(event)) position += event.count;
    if (event.kind == Kind::frames) place.byte += event.count * frame_bytes_;
  }
  const bool meets = slice.first_event + place.event == next_event_;
  return !meets || position == position_ ? std::optional(place) : std::nullopt;
}

bool EventJoin::legal(const Slice& slice, std::size_t from) const {
  const bool continues = slice.first_event <= next_event_ && !begins(slice);
  std::uint64_t position = continues ? position_ : slice.begin;
  for (std::size_t i = from; i < slice.events.size(); ++i) {
    const Event& event = slice.events[i].event;
    if ((event.kind == Kind::open) != (slice.first_event + i == 0)) return false;
    if (ends(event) && i + 1 < slice.events.size()) return false;
    if (!has_legal_count(event, position)) return false;
    if (moves(event)) position += event.count;
  }
  return true;
}

void EventJoin::name_missing(std::uint32_t number, const Slice& slice, const std::string& why) {
  std::string dropped = why;
  if (slice.lost) dropped = "not recorded: " + std::string(name_of(slice.lost->reason));
  if (slice.first_event <= next_event_) {
    if (number > next_number_) missing_.push_back({position_, position_, 0, dropped});
    return;
  }
  std::uint64_t event = next_event_;
  std::uint64_t begin = position_;
  // Events before those that were dropped may be missing for another reason.
  if (slice.lost && slice.lost->first_event > event &&
      slice.lost->first_event < slice.first_event && slice.lost->begin >= begin &&
      slice.lost->begin <= slice.begin) {
    missing_.push_back({begin, slice.lost->begin, slice.lost->first_event - event, why});
    event = slice.lost->first_event;
    begin = slice.lost->begin;
  }
  missing_.push_back({begin, slice.begin, slice.first_event - event, dropped});
}

void EventJoin::replace_missing(const Slice& slice) {
  if (!begun_) insert(Kind::open);
  if (slice.begin > position_)
    insert(Kind::gap, slice.begin - position_);
  else
    insert(Kind::reset);
  if (slice.size != size_) insert(Kind::size, slice.size);
  size_ = slice.size;
  position_ = slice.begin;
  next_event_ = slice.first_event;
}

void EventJoin::take(const Slice& slice, Place from) {
  slice_ = slice;
  place_ = from;
  record_ = 0;
  totals_due_ = slice.closing.has_value();
  finished_ = totals_due_;
  if (begins(slice) && !slice.events.empty()) position_ = slice.begin;
  for (const RecordedEvent& timed : slice.events.subspan(from.event)) {
    const Event& event = timed.event;
    if (moves(event)) position_ += event.count;
    if (event.kind == Kind::size) size_ = event.count;
    ended_ = ended_ || ends(event);
    ++next_event_;
    begun_ = true;
  }
}

void EventJoin::insert(Kind kind, std::uint64_t count) {
  inserted_[inserted_end_++] = {.kind = kind, .cause = Cause::recorder, .count = count};
  begun_ = true;
}

void EventJoin::finish(std::uint64_t end, const std::string& why) {
  if (finished_) return;
  finished_ = true;
  if (ended_) {
    over_ = true;
    return;
  }
  if (end > most_position || end < position_) end = position_;
  missing_.push_back({position_, end, 0, why});
  if (!begun_) insert(Kind::open);
  if (end > position_) insert(Kind::gap, end - position_);
  position_ = end;
  insert(Kind::abort);
  ended_ = true;
}

std::optional<RecordedItem> EventJoin::next() {
  if (inserted_begin_ < inserted_end_) return next_inserted();
  if (place_.event < slice_.events.size()) return next_event();
  auto record = slice_.record(record_);
  if (!record) return std::nullopt;
  if (std::holds_alternative<StreamTotals>(*record)) {
    if (!ended_) {
      if (!begun_) insert(Kind::open);
      insert(Kind::abort);
      ended_ = true;
      return next_inserted();
    }
    totals_due_ = false;
    over_ = true;
  }
  ++record_;
  return record;
}

RecordedEvent EventJoin::next_event() {
  RecordedEvent event = slice_.events[place_.event++];
  at_ = event.at;
  if (event.event.kind == Kind::frames) {
    event.frames = slice_.frames.subspan(place_.byte, event.event.count * frame_bytes_);
    place_.byte += event.frames.size();
  }
  return placed(event);
}

RecordedEvent EventJoin::next_inserted() {
  const RecordedEvent event{.event = inserted_[inserted_begin_++], .at = at_};
  if (inserted_begin_ == inserted_end_) {
    inserted_begin_ = inserted_end_ = 0;
    if (event.event.kind == Kind::abort && !totals_due_) over_ = true;
  }
  return placed(event);
}

RecordedEvent EventJoin::placed(RecordedEvent event) {
  if (event.event.kind == Kind::open) given_position_ = event.event.count;
  event.position = given_position_;
  event.frame = given_frames_;
  if (moves(event.event)) given_position_ += event.event.count;
  if (event.event.kind == Kind::frames) given_frames_ += event.event.count;
  return event;
}

}  // namespace millrace::recording
