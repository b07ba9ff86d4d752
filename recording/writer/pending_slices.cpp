// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/pending_slices.h"

#include <cstring>
#include <string_view>
#include <utility>

namespace millrace::recording {
namespace {

template <class Value>
Value value_of(Bytes bytes) {
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Slice PendingStream::slice() const {
  return {.stream = meta.number,
          .first_event = first_event,
          .begin = begin,
          .size = first_size,
          .events = events,
          .answers = answers,
          .lost = lost,
          .closing = closing};
}

std::int64_t PendingStream::wall() const {
  const std::int64_t at = events.empty() ? last_at : to_wire(events.front().at);
  return meta.opened_wall + (at - meta.opened_steady);
}

void PendingStream::begin_here() {
  first_event = next_event;
  begin = position;
  first_size = size;
}

void PendingStream::begin_next() {
  begin_here();
  events.clear();
  frames.clear();
  answers.clear();
}

void PendingSlices::take(Page& page) {
  page.read([&](const PageRecord& record, Bytes bytes) { take(record, bytes, page); });
}

void PendingSlices::take(const PageRecord& record, Bytes bytes, Page& page) {
  if (record.kind == PageRecord::Kind::opened) {
    auto& meta = *page.opened[record.count];
    PendingStream& stream = streams_[record.stream];
    stream.last_at = meta.opened_steady;
    stream.meta = std::move(meta);
    return;
  }
  const auto found = streams_.find(record.stream);
  if (found == streams_.end()) return;
  PendingStream& stream = found->second;
  wait(stream);
  switch (record.kind) {
    case PageRecord::Kind::event: return add_event(stream, record, bytes);
    case PageRecord::Kind::answer: return add_answer(stream, record, bytes, page.thread());
    case PageRecord::Kind::skip: return add_skip(stream, value_of<Skip>(bytes));
    default: stream.closing = value_of<StreamTotals>(bytes);
  }
}

void PendingSlices::wait(PendingStream& stream) {
  if (!std::exchange(stream.waits, true)) waiting_.push_back(&stream);
}

void PendingSlices::add_event(PendingStream& stream, const PageRecord& record, Bytes bytes) {
  const Event event{.kind = static_cast<Event::Kind>(record.what),
                    .cause = record.cause,
                    .count = record.count,
                    .mark = record.has_mark ? std::optional(record.number) : std::nullopt};
  stream.events.push_back({event, from_wire(record.at)});
  stream.last_at = record.at;
  ++stream.next_event;
  if (event.kind == Event::Kind::size) stream.size = static_cast<std::uint32_t>(event.count);
  if (event.kind == Event::Kind::gap) stream.position += event.count;
  if (event.kind != Event::Kind::frames) return;
  stream.position += event.count;
  stream.frames.push_back(bytes);
  bytes_ += bytes.size();
}

void PendingSlices::add_answer(PendingStream& stream, const PageRecord& record, Bytes bytes,
                               std::size_t thread) {
  if (thread >= parts_.size()) parts_.resize(thread + 1);
  std::string& part = parts_[thread];
  if (record.first) part.clear();
  bytes_ += bytes.size();
  std::string_view data = text_of(bytes);
  if (!record.first || !record.last) {
    part.append(data);
    if (!record.last) return;
    data = joined_.emplace_back(std::exchange(part, {}));
  }
  stream.answers.push_back({.seq = record.count,
                            .batch = BatchId{record.number},
                            .kind = static_cast<Answer::Kind>(record.what),
                            .data = data});
}

// A slice has dropped events only before its first one.
void PendingSlices::add_skip(PendingStream& stream, const Skip& skip) {
  if (!stream.events.empty()) sink_.add(stream);
  if (!stream.lost)
    stream.lost = LostEvents{
        .first_event = stream.next_event, .begin = stream.position, .reason = skip.reason};
  sink_.skipped(skip.reason);
  ++stream.slice_number;
  stream.next_event = skip.next_event;
  stream.position = skip.position;
  stream.size = skip.size;
  stream.begin_here();
}

void PendingSlices::clear() {
  for (PendingStream* stream : waiting_) stream->waits = false;
  waiting_.clear();
  joined_.clear();
  bytes_ = 0;
}

}  // namespace millrace::recording
