// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/pending_slices.h"

#include <cstring>
#include <new>
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

Event event_of(const PageRecord& record) {
  return {.kind = static_cast<Event::Kind>(record.what),
          .cause = record.cause,
          .count = record.count,
          .mark = record.has_mark ? std::optional(record.number) : std::nullopt,
          .rows = record.has_mark ? 0 : record.number};
}

}  // namespace

Slice PendingStream::slice() const {
  return viewed(
      {.stream = meta.number, .first_event = first_event, .begin = begin, .size = first_size});
}

std::int64_t PendingStream::wall() const {
  const std::int64_t at = events.empty() ? last_at : to_wire(events.front().at);
  return meta.opened_wall + (at - meta.opened_steady);
}

void PendingStream::count(const Event& event, std::int64_t at) {
  using Kind = Event::Kind;
  last_at = at;
  ++next_event;
  if (event.kind == Kind::open) position = begin = event.count;
  if (event.kind == Kind::size) size = static_cast<std::uint32_t>(event.count);
  if (event.kind == Kind::gap || event.kind == Kind::frames) position += event.count;
}

void PendingStream::begin_here() {
  first_event = next_event;
  begin = position;
  first_size = size;
}

void PendingStream::begin_next() {
  begin_here();
  clear();
  frames.clear();
}

void PendingSlices::take(Page& page) {
  page.read([&](const PageRecord& record, Bytes bytes) { take(record, bytes, page); });
}

void PendingSlices::take(const PageRecord& record, Bytes bytes, Page& page) {
  if (record.kind == PageRecord::Kind::opened) return open(record, page);
  const auto found = streams_.find(record.stream);
  if (found == streams_.end()) return;
  PendingStream& stream = found->second;
  if (record.kind == PageRecord::Kind::event && record.last)
    stream.count(event_of(record), record.at);
  try {
    wait(stream);
    add(stream, record, bytes, page.thread());
  } catch (const std::bad_alloc&) {
    sink_.drop(stream, DropReason::memory);
  }
}

void PendingSlices::open(const PageRecord& record, Page& page) {
  auto& meta = *page.opened[record.count];
  try {
    PendingStream& stream = streams_[record.stream];
    stream.last_at = meta.opened_steady;
    stream.meta = std::move(meta);
  } catch (const std::bad_alloc&) {  // the stream stays unknown
    sink_.skipped(DropReason::memory);
  }
}

void PendingSlices::wait(PendingStream& stream) {
  if (stream.waits) return;
  waiting_.push_back(&stream);
  stream.waits = true;
}

void PendingSlices::add_event(PendingStream& stream, const PageRecord& record, Bytes bytes,
                              std::size_t thread) {
  const Event event = event_of(record);
  std::string_view text;
  if (event.has_text()) {
    const auto whole = joined(record, bytes, thread);
    if (!whole) return;
    // There was no memory for a part of it.
    if (whole->size() != event.count) return sink_.drop(stream, DropReason::memory);
    text = *whole;
  }
  stream.events.push_back({.event = event, .at = from_wire(record.at), .text = text});
  if (event.kind != Event::Kind::frames) return;
  stream.frames.push_back(bytes);
  bytes_ += bytes.size();
}

void PendingSlices::add(PendingStream& stream, const PageRecord& record, Bytes bytes,
                        std::size_t thread) {
  if (record.kind == PageRecord::Kind::event) return add_event(stream, record, bytes, thread);
  if (record.kind == PageRecord::Kind::answer || record.kind == PageRecord::Kind::message)
    return add_answer(stream, record, bytes, thread);
  if (record.kind == PageRecord::Kind::skip) return add_skip(stream, value_of<Skip>(bytes));
  stream.closing = value_of<StreamTotals>(bytes);
}

// The data of a record with its last part. nullopt: it has more parts.
std::optional<std::string_view> PendingSlices::joined(const PageRecord& record, Bytes bytes,
                                                      std::size_t thread) {
  if (thread >= parts_.size()) parts_.resize(thread + 1);
  std::string& part = parts_[thread];
  if (record.first) part.clear();
  bytes_ += bytes.size();
  if (record.first && record.last) return text_in(bytes);
  part.append(text_in(bytes));
  if (!record.last) return std::nullopt;
  return joined_.emplace_back(std::exchange(part, {}));
}

void PendingSlices::add_answer(PendingStream& stream, const PageRecord& record, Bytes bytes,
                               std::size_t thread) {
  const auto data = joined(record, bytes, thread);
  if (!data) return;
  const auto kind = static_cast<Answer::Kind>(record.what);
  if (record.kind == PageRecord::Kind::answer)
    stream.answers.push_back({record.count, BatchId{record.number}, kind, *data});
  else
    stream.messages.push_back({record.count, record.number, kind, *data});
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
