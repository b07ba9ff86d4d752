// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/joined_reader.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "chunker/rule_json.h"

namespace millrace::recording {

using Kind = Event::Kind;

namespace {

// Leaves only the first frames of a `frames` event. Requires: it has as many.
void shorten(RecordedEvent& read, std::uint64_t count) {
  if (count == read.event.count) return;
  read.frames = read.frames.first(read.frames.size() / read.event.count * count);
  read.event.count = count;
}

}  // namespace

JoinedReader::JoinedReader(Recordings& recordings, const StreamParts& parts)
    : opened_steady_(parts.front().meta.opened_steady),
      opened_wall_(parts.front().meta.opened_wall) {
  for (const RecordedStream& part : parts) parts_.push_back({StreamReader(recordings, part)});
  if (parts_.size() > 1) set_limits();
  begin_part();
}

// A part without a row that counts is left out.
void JoinedReader::set_limits() {
  std::uint64_t position = max, row = max;
  for (auto part = parts_.end(); part != parts_.begin();) {
    --part;
    part->position = position;
    part->row = row;
    part->first = part->reader.next();
    const auto* open = part->first ? std::get_if<RecordedEvent>(&*part->first) : nullptr;
    if (!open || open->event.cause == Cause::recorder) {
      position = std::min(position, part->reader.stream().begin);
      row = max;
      continue;
    }
    const bool is_replaced = open->event.rows >= row;
    position = std::min(position, open->event.count);
    row = std::min(row, open->event.rows);
    if (is_replaced) part = parts_.erase(part);
  }
}

void JoinedReader::begin_part() {
  const Part& part = parts_[at_];
  const StreamMeta& meta = part.reader.stream().meta;
  later_ = Duration((opened_steady_ - meta.opened_steady) + (meta.opened_wall - opened_wall_));
  complete_ = false;
  chunker_.reset();
  if (at_ > 0) place_begin();
  if (part.row == max) return;
  const auto rule =
      rule_from_json(meta.rule, {.rate = meta.frames.rate, .features = meta.frames.features});
  if (!rule) return;
  rule_ = *rule;
  chunker_.emplace(rule_->chunker_spec());
}

// A stream whose begin is damaged opens at position 0, and has a gap up to its first event. A later
// part opens where it was opened.
void JoinedReader::place_begin() {
  Part& part = parts_[at_];
  auto* open = part.first ? std::get_if<RecordedEvent>(&*part.first) : nullptr;
  if (!open || open->event.cause != Cause::recorder) return;
  skipped_ = open->event.count = open->position = part.reader.stream().begin;
}

std::optional<RecordedItem> JoinedReader::next() {
  for (;;) {
    auto item = next_of_part();
    if (!item) {
      if (at_ + 1 == parts_.size()) return item;
      ++at_;
      begin_part();
    } else if (counts(*item)) {
      return item;
    }
  }
}

std::optional<RecordedItem> JoinedReader::next_of_part() {
  Part& part = parts_[at_];
  if (part.first) return std::exchange(part.first, std::nullopt);
  auto item = part.reader.next();
  auto* read = item ? std::get_if<RecordedEvent>(&*item) : nullptr;
  if (!read || skipped_ == 0) return item;
  const std::uint64_t skipped = std::exchange(skipped_, 0);
  if (read->event.kind != Kind::gap || read->event.count < skipped) return item;
  read->position = skipped;
  read->event.count -= skipped;
  if (read->event.count == 0) read->event.kind = Kind::reset;
  return item;
}

bool JoinedReader::counts(RecordedItem& item) {
  const Part& part = parts_[at_];
  auto* read = std::get_if<RecordedEvent>(&item);
  if (read) read->at += later_;
  if (part.position == max) return true;
  if (read) return !complete_ && counts(*read);
  if (const auto* answer = std::get_if<RecordedAnswer>(&item)) return answer->seq < part.row;
  if (const auto* message = std::get_if<RecordedMessage>(&item)) return message->seq < part.row;
  return false;
}

// Shortens frames to those that count.
bool JoinedReader::counts(RecordedEvent& read) {
  const Part& part = parts_[at_];
  if (read.event.kind == Kind::abort) return false;
  if (read.event.kind == Kind::end) read.event.kind = Kind::flush;
  const bool opens = read.event.kind == Kind::open, has_frames = read.event.kind == Kind::frames;
  if (opens) next_row_ = read.event.rows;
  if (!chunker_) {
    const std::uint64_t left = part.position - std::min(part.position, read.position);
    if (has_frames) shorten(read, std::min(read.event.count, left));
    complete_ = !opens && left == 0;
    return !complete_;
  }
  if (has_frames)
    cut_frames(read);
  else if (next_row_ >= part.row)
    return false;
  else if (read.event.kind != Kind::size || rule_->allows_body(read.event.count))
    feed(read.event);
  complete_ = next_row_ >= part.row && chunker_->position() >= part.position;
  return !has_frames || read.event.count > 0;
}

// If bodies do not lie end to end, frames between them follow the last row.
void JoinedReader::cut_frames(RecordedEvent& read) {
  const Part& part = parts_[at_];
  std::uint64_t fed = 0;
  while (fed < read.event.count) {
    const std::uint64_t most = next_row_ < part.row
                                   ? chunker_->frames_until_next()
                                   : part.position - std::min(part.position, read.position + fed);
    if (most == 0) break;
    const std::uint64_t count = std::min(read.event.count - fed, most);
    feed({.kind = Kind::frames, .count = count});
    fed += count;
  }
  shorten(read, fed);
}

void JoinedReader::feed(const Event& event) {
  chunker_->add(event);
  while (chunker_->next()) ++next_row_;
}

bool JoinedReader::counts_once(RecordedEvent& read) const {
  const std::uint64_t until = counts_until();
  switch (read.event.kind) {
    case Kind::frames:
      shorten(read, std::min(read.event.count, until - std::min(until, read.position)));
      return read.event.count > 0;
    case Kind::flush:
    case Kind::reset:
    case Kind::gap:
    case Kind::end: return read.position <= until;
    default: return true;
  }
}

std::size_t JoinedReader::missing_count() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i <= at_; ++i)
    for (const MissingPart& part : parts_[i].reader.missing())
      if (part.begin < parts_[i].position) ++count;
  return count;
}

std::vector<MissingPart> JoinedReader::missing() const {
  std::vector<MissingPart> all;
  for (std::size_t i = 0; i <= at_; ++i)
    for (const MissingPart& part : parts_[i].reader.missing())
      if (part.begin < parts_[i].position) all.push_back(part);
  return all;
}

}  // namespace millrace::recording
