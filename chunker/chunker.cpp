// SPDX-License-Identifier: Apache-2.0
#include "chunker/chunker.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace millrace {
namespace {

using Kind = Event::Kind;

ResetReason reason_of(const Event& event) {
  if (event.kind == Kind::gap)
    return event.cause == Cause::load ? ResetReason::overflow : ResetReason::gap;
  return event.cause == Cause::endpoint ? ResetReason::endpoint : ResetReason::client;
}

}  // namespace

Chunker::Chunker(const Spec& spec) : spec_(spec), size_(spec.size) { assert(spec.check()); }

void Chunker::add(const Event& event) {
  assert(!is_closing() && !next_body() && !ended_);
  switch (event.kind) {
    case Kind::open:
      if (event.opened_anew()) open_anew(event);
      break;
    case Kind::message:
    case Kind::set: break;
    case Kind::frames:
      assert(event.count <= max_position - position_);
      received_ = position_ += event.count;
      break;
    case Kind::size:
      assert(spec_.check_size(event.count));
      size_ = static_cast<std::uint32_t>(event.count);
      break;
    case Kind::gap:
      assert(event.count >= 1 && event.count <= max_position - position_);
      position_ += event.count;
      // A segment without frames has not begun: there is nothing to end.
      if (received_ == segment_) {
        begin_segment(event);
        break;
      }
      [[fallthrough]];
    case Kind::flush:
    case Kind::reset:
    case Kind::end:
    case Kind::abort: closing_ = event; break;
  }
}

std::optional<Row> Chunker::next() {
  if (const auto body = next_body()) {
    Row row = cut(*body);
    if (is_closing() && !next_body()) close_segment(row);
    return row;
  }
  if (!is_closing()) return std::nullopt;
  Row row = emit(received_, {.size = 0, .right = 0});
  close_segment(row);
  return row;
}

std::uint64_t Chunker::frames_until_next() const {
  if (is_closing()) return 0;
  const std::uint64_t ready = body_ + full_size() + spec_.right;
  return ready - std::min(ready, received_);
}

std::uint64_t Chunker::keep_from() const {
  if (ended_) return position_;
  const std::uint64_t begin = resume_position();
  return begin - std::min<std::uint64_t>(spec_.left, begin - run_);
}

std::uint64_t Chunker::resume_position() const {
  if (ended_) return position_;
  // After a flush the next body begins at received_, even if a step would lead beyond it.
  return std::min(body_, received_);
}

std::uint32_t Chunker::full_size() const {
  return first_of_run() ? spec_.first_body(size_) : size_;
}

std::optional<Chunker::Body> Chunker::next_body() const {
  const std::uint32_t full = full_size();
  if (body_ + full + spec_.right <= received_) return Body{.size = full, .right = spec_.right};
  return tail_body();
}

// The rows of the end of a segment. The first body that is left out is the last one considered: the
// bodies after it would be cut too, and are not longer.
std::optional<Chunker::Body> Chunker::tail_body() const {
  if (!is_closing() || closing_.kind == Kind::abort || body_ >= received_) return std::nullopt;
  if (spec_.tail == Spec::Tail::cover && covered_ >= received_) return std::nullopt;
  const std::uint64_t rest = received_ - body_;
  const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(full_size(), rest));
  if (size < full_size()) {
    const bool short_tail = !first_of_segment_ && size < spec_.min;
    if (spec_.tail == Spec::Tail::drop || short_tail) return std::nullopt;
  }
  const auto right = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec_.right, rest - size));
  return Body{.size = size, .right = right};
}

Row Chunker::cut(Body body) {
  Row row = emit(body_, body);
  covered_ = row.end();
  body_ += spec_.advance(first_of_run(), size_);
  first_of_segment_ = false;
  return row;
}

Row Chunker::emit(std::uint64_t begin, Body body) {
  Row row;
  row.seq = seq_++;
  row.begin = begin;
  row.size = body.size;
  row.right = body.right;
  row.flags = due_;
  if (row.is(flag::reset)) row.reason = reason_;
  row.gap = std::exchange(gap_, 0);
  if (row.has_frames()) {
    row.left = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec_.left, begin - run_));
    due_ = 0;
  } else {
    due_ &= flag::reset;  // stays due until a row with frames has carried it
  }
  return row;
}

void Chunker::open_anew(const Event& event) {
  assert(seq_ == 0 && position_ == 0 && event.count <= max_position);
  run_ = segment_ = body_ = covered_ = received_ = position_ = event.count;
  seq_ = event.rows;
  due_ = flag::reset | flag::segment;
  reason_ = ResetReason::failover;
}

void Chunker::close_segment(Row& last) {
  last.flags |= flag::last;
  if (closing_.kind == Kind::end || closing_.kind == Kind::abort) last.flags |= flag::end;
  if (closing_.kind == Kind::abort) last.flags |= flag::abort;
  ended_ = last.is(flag::end);
  last.mark = closing_.mark;
  if (!ended_) begin_segment(closing_);
  closing_ = {};
}

void Chunker::begin_segment(const Event& event) {
  segment_ = body_ = covered_ = received_ = position_;
  first_of_segment_ = true;
  due_ |= flag::segment;
  if (event.kind == Kind::flush) return;
  run_ = segment_;
  due_ |= flag::reset;
  reason_ = reason_of(event);
  if (event.kind == Kind::gap) {
    due_ |= flag::gap;
    gap_ += event.count;
  }
}

}  // namespace millrace
