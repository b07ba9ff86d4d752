// SPDX-License-Identifier: Apache-2.0
#include "streams/intake.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace millrace {

using Kind = Event::Kind;

Intake::Intake(const StreamSettings& settings, const StreamLinks& links, ClientOutput& client,
               FrameBuffer& frames)
    : settings_(settings),
      links_(links),
      client_(client),
      frames_(frames),
      backlog_(links.blocks, settings.type.bytes()),
      converter_(settings.format.format, settings.type),
      clamps_(settings.type.rate, settings.type.values),
      waiting_(settings.shed_after.value_or(Duration{}) / shed_grains) {}

bool Intake::add_frames(Bytes message, Time now) {
  const std::size_t count = converter_.whole_frames(message.size());
  if (!in_range(count)) return false;
  const bool apart = settings_.shed_after && !waiting_.empty();
  FrameBuffer& buffer = apart ? backlog_ : frames_;
  const std::uint64_t begin = buffer.end();
  const FrameConverter::Findings found = convert(message, count, buffer);
  if (!found.finite) {
    buffer.truncate(begin);
    client_.rejected(ErrorCode::values, "a value is NaN or infinite", count);
    return add_gap(count, Cause::rejected, now);
  }
  if (count == 0) return true;
  if (!apart) unfed_ += count;
  position_ += count;
  links_.stats.frames.add(count);
  links_.stats.clamped.add(found.clamped);
  if (clamps_.add(count, found.clamped)) {
    links_.host.warned(settings_.name, ClampWatch::message);
    client_.warning(ErrorCode::values, ClampWatch::message);
  }
  add({.kind = Kind::frames, .count = count}, now);
  return true;
}

FrameConverter::Findings Intake::convert(Bytes message, std::size_t count, FrameBuffer& to) {
  for (const std::uint64_t end = to.end() + count; to.end() < end;) {
    const MutableBytes writable = to.writable(end - to.end());
    converter_.convert(message, writable);
    to.append(writable.size() / settings_.type.bytes());
  }
  return converter_.finish(message);
}

bool Intake::add_gap(std::uint64_t frames, Cause cause, Time now) {
  if (!in_range(frames)) return false;
  if (frames == 0) return true;
  links_.stats.lost[cause == Cause::rejected ? Loss::rejected : Loss::gap].add(frames);
  position_ += frames;
  add({.kind = Kind::gap, .cause = cause, .count = frames}, now);
  return true;
}

void Intake::reject_partial_frame() {
  if (!converter_.has_partial()) return;
  converter_.drop_partial();
  client_.rejected(ErrorCode::values, "not a whole number of frames", 0);
}

// The waiting frames in frames_ came with one message and are the oldest: they are shed together or
// not at all.
void Intake::shed(Time now) {
  const Duration wait = *settings_.shed_after + *settings_.shed_after / shed_grains;
  const std::uint64_t frames = waiting_.shed(now - wait);
  if (frames == 0) return;
  assert(unfed_ <= frames);
  backlog_.release(backlog_.end() - backlog_.held() + frames - unfed_);
  frames_.truncate(frames_.end() - unfed_);
  unfed_ = 0;
  links_.stats.lost[Loss::overflow].add(frames);
}

void Intake::clear() {
  waiting_.clear();
  frames_.truncate(frames_.end() - unfed_);
  unfed_ = 0;
  backlog_.release(backlog_.end());
}

WaitingEvents::Waiting Intake::take(std::uint64_t frames) {
  const auto next = waiting_.take(frames);
  if (next.event.kind == Kind::frames) fetch(next.event.count);
  return next;
}

// Moves those of the next `frames` that are in the backlog to frames_.
void Intake::fetch(std::uint64_t frames) {
  const std::uint64_t there = std::min(frames, unfed_);
  unfed_ -= there;
  for (frames -= there; frames > 0;) {
    const MutableBytes writable = frames_.writable(frames);
    const std::size_t count = writable.size() / settings_.type.bytes();
    const std::uint64_t first = backlog_.end() - backlog_.held();
    std::byte* to = writable.data();
    for (const Bytes part : backlog_.window(first, count)) {
      if (!part.empty()) std::memcpy(to, part.data(), part.size());
      to += part.size();
    }
    frames_.append(count);
    backlog_.release(first + count);
    frames -= count;
  }
}

}  // namespace millrace
