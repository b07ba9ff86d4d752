// SPDX-License-Identifier: Apache-2.0
#include "recording/format/part_table.h"

#include <algorithm>

namespace millrace::recording {

const StreamPart* PartTable::find(std::uint64_t stream) const {
  const auto found = parts_.find(stream);
  return found == parts_.end() ? nullptr : &found->second.part;
}

bool PartTable::can_follow(std::uint32_t number, const Slice& slice) const {
  const auto found = parts_.find(slice.stream);
  if (found == parts_.end()) return true;
  return number >= found->second.next && slice.begin >= found->second.part.end;
}

void PartTable::add(std::uint16_t channel, std::uint32_t number, const Slice& slice) {
  const auto [found, first] = parts_.try_emplace(slice.stream);
  auto& [part, next] = found->second;
  if (first) {
    part = {.stream = slice.stream,
            .first_slice = number,
            .first_event = slice.first_event,
            .begin = slice.begin,
            .channel = channel};
  } else if (number != next) {
    // Not by slice.lost: what it names may be in the file before, because a sync that failed can
    // have written it. Numbers of slices show a loss between files.
    part.lost = true;
    if (!slice.lost) losses_.push_back({slice.stream, part.end, slice.begin});
  }
  next = std::uint64_t{number} + 1;
  ++part.slices;
  part.end = slice.begin;
  for (const RecordedEvent& timed : slice.events) {
    const bool frames = timed.event.kind == Event::Kind::frames;
    if (frames) part.frames += timed.event.count;
    if (frames || timed.event.kind == Event::Kind::gap) part.end += timed.event.count;
  }
  part.closed = slice.closing.has_value();
  part.complete = slice.closing && slice.closing->complete;
}

void PartTable::put(const StreamPart& part) {
  Entry& entry = parts_[part.stream];
  entry = {.part = part, .next = std::uint64_t{part.first_slice} + part.slices};
}

void PartTable::set_lost(std::uint64_t stream) {
  if (const auto found = parts_.find(stream); found != parts_.end()) found->second.part.lost = true;
}

void PartTable::set_lost() {
  for (auto& [stream, entry] : parts_)
    if (!entry.part.closed) entry.part.lost = true;
}

std::vector<StreamPart> PartTable::list() const {
  std::vector<StreamPart> list;
  list.reserve(parts_.size());
  for (const auto& [stream, entry] : parts_) list.push_back(entry.part);
  std::ranges::sort(list, {}, &StreamPart::stream);
  return list;
}

}  // namespace millrace::recording
