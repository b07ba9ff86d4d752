// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/stream_pen.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace millrace::recording {
namespace {

using Kind = Event::Kind;

// At the end of a page, a smaller part of a record than this is not worth its head.
constexpr std::size_t least_part = 2048;

template <class Value>
void put(std::byte* into, const Value& value) {
  std::memcpy(into, &value, sizeof value);
}

// Copies `bytes` of the two parts, from `offset` on.
void copy(std::byte* into, const std::array<Bytes, 2>& parts, std::size_t offset,
          std::size_t bytes) {
  const std::size_t from_first =
      offset < parts[0].size() ? std::min(bytes, parts[0].size() - offset) : 0;
  if (from_first > 0) std::memcpy(into, parts[0].data() + offset, from_first);
  if (from_first == bytes) return;
  std::memcpy(into + from_first, parts[1].data() + (offset + from_first - parts[0].size()),
              bytes - from_first);
}

}  // namespace

StreamPen::StreamPen(PageWriter& pages, std::unique_ptr<StreamMeta> meta)
    : pages_(pages),
      meta_(std::move(meta)),
      stream_(meta_->number),
      frame_bytes_(meta_->frames.bytes()) {}

void StreamPen::event(const Event& event, Time at, const std::array<Bytes, 2>& frames) {
  if (event.kind == Kind::frames) return write_frames(event, at, frames);
  const bool written = write_parts({.at = to_wire(at),
                                    .count = event.count,
                                    .number = event.mark.value_or(event.rows),
                                    .kind = PageRecord::Kind::event,
                                    .what = static_cast<std::uint8_t>(event.kind),
                                    .cause = event.cause,
                                    .has_mark = event.mark.has_value()},
                                   frames[0]);
  if (!written) return drop(event);
  ++events_;
  count(event);
}

void StreamPen::write_frames(const Event& event, Time at, const std::array<Bytes, 2>& frames) {
  Event part = event;
  for (std::uint64_t done = 0; done < event.count; done += part.count) {
    const std::uint64_t left = event.count - done;
    part.count = left;
    Page* page = pages_.current();
    PageRecord* const last = page ? page->last() : nullptr;
    const bool joins = last && last->stream == stream_ && last->at == to_wire(at) &&
                       last->kind == PageRecord::Kind::event &&
                       last->what == static_cast<std::uint8_t>(Kind::frames) &&
                       last->cause == event.cause && page->spare() >= frame_bytes_;
    std::byte* into = nullptr;
    if (joins) {
      part.count = std::min<std::uint64_t>(left, page->spare() / frame_bytes_);
      last->count += part.count;
      into = page->grow(part.count * frame_bytes_);
    } else {
      page =
          page_for(std::min<std::size_t>(left * frame_bytes_, std::max(frame_bytes_, least_part)));
      if (!page) return drop(part);
      part.count = std::min<std::uint64_t>(left, *page->room() / frame_bytes_);
      pages_.begin(*page, at);
      into = page->add({.stream = stream_,
                        .at = to_wire(at),
                        .count = part.count,
                        .bytes = static_cast<std::uint32_t>(part.count * frame_bytes_),
                        .kind = PageRecord::Kind::event,
                        .what = static_cast<std::uint8_t>(Kind::frames),
                        .cause = event.cause});
      ++events_;
    }
    copy(into, frames, done * frame_bytes_, part.count * frame_bytes_);
    count(part);
  }
}

void StreamPen::write(PageRecord::Kind kind, std::uint64_t seq, std::uint64_t number,
                      const Answer& answer) {
  const bool written = write_parts({.count = seq,
                                    .number = number,
                                    .kind = kind,
                                    .what = static_cast<std::uint8_t>(answer.kind)},
                                   std::as_bytes(std::span(answer.data)));
  if (!written) begin_dropping();
}

// Writes a record with this data, in several parts if it is longer than a page. False: there is no
// page for a part.
bool StreamPen::write_parts(PageRecord record, Bytes data) {
  record.stream = stream_;
  std::size_t done = 0;
  do {
    Page* const page = page_for(std::min(data.size() - done, least_part));
    if (!page) return false;
    if (record.kind == PageRecord::Kind::event) pages_.begin(*page, from_wire(record.at));
    const std::size_t part = std::min(data.size() - done, *page->room());
    record.bytes = static_cast<std::uint32_t>(part);
    record.first = done == 0;
    record.last = done + part == data.size();
    std::byte* const into = page->add(record);
    if (part > 0) std::memcpy(into, data.data() + done, part);
    done += part;
  } while (done < data.size());
  return true;
}

void StreamPen::close(const StreamTotals& totals) {
  totals_ = totals;
  totals_.frames = position_ - begin_ - lost_;
  totals_.lost = lost_;
}

bool StreamPen::finish() {
  Page* const page = page_for(sizeof totals_);
  if (!page) return false;
  put(page->add({.stream = stream_, .bytes = sizeof totals_, .kind = PageRecord::Kind::closed}),
      totals_);
  return true;
}

// The page for the stream's next record. First writes the records that are due before it.
Page* StreamPen::page_for(std::size_t bytes) {
  if (meta_ && !name_stream()) return nullptr;
  if (dropping_) {
    const Skip skip{
        .next_event = events_, .position = position_, .size = size_, .reason = *dropping_};
    Page* const page = pages_.with_room(sizeof skip);
    if (!page) return nullptr;
    put(page->add({.stream = stream_, .bytes = sizeof skip, .kind = PageRecord::Kind::skip}), skip);
    dropping_.reset();
  }
  return pages_.with_room(bytes);
}

bool StreamPen::name_stream() {
  Page* const page = pages_.with_room(0);
  if (!page) return false;
  try {
    page->opened.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  page->opened.back() = std::move(meta_);
  page->add(
      {.stream = stream_, .count = page->opened.size() - 1, .kind = PageRecord::Kind::opened});
  return true;
}

void StreamPen::drop(const Event& event) {
  begin_dropping();
  ++events_;
  count(event);
}

void StreamPen::begin_dropping() {
  if (dropping_) return;
  dropping_ = pages_.reason();
  pages_.stats().dropped[*dropping_].add();
}

void StreamPen::count(const Event& event) {
  if (event.kind == Kind::open) position_ = begin_ = event.count;
  if (event.kind == Kind::size) size_ = static_cast<std::uint32_t>(event.count);
  if (event.kind == Kind::gap) lost_ += event.count;
  if (event.kind == Kind::gap || event.kind == Kind::frames) position_ += event.count;
}

}  // namespace millrace::recording
