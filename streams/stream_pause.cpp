// SPDX-License-Identifier: Apache-2.0
// When a client is paused, and how much it may send.
#include <algorithm>
#include <chrono>
#include <utility>

#include "streams/stream.h"

namespace millrace {

// While blocks are scarce, rows at the worker do not count: a client that sends in real time would
// fall behind by each of their round trips.
bool Stream::full() const {
  if (held() >= settings_.frames_limit + pause_frames()) return true;
  const std::uint64_t to_come = cutter_.frames_to_come() + intake_.kept_apart();
  return links_.blocks.scarce() && to_come >= settings_.spec.width();
}

// Without outstanding rows only written() could resume it. If unwritten results do not hold it up
// either, it holds less than a window.
bool Stream::relieved(std::uint64_t at_most) const {
  if (cutter_.rows().empty()) return !held_up_;
  if (links_.blocks.scarce() && cutter_.rows().ready() > 0) return false;
  return held() <= at_most && intake_.waiting() <= WaitingEvents::crowded / 2;
}

void Stream::measure_pause(Time now) {
  if (paused_ && now > settled_) paused_for_ += now - settled_;
  settled_ = now;
}

// Frames above the limit that may be held by now.
std::uint64_t Stream::pause_frames() const {
  const double seconds = std::chrono::duration<double>(paused_for_).count();
  return std::min(settings_.pause_frames,
                  static_cast<std::uint64_t>(2 * settings_.type.rate * seconds));
}

void Stream::update_pause() {
  if (held() <= settings_.frames_limit / 2) paused_for_ = {};
  const bool crowded = intake_.waiting() >= WaitingEvents::crowded;
  const bool was = paused_;
  const bool stays = was && !relieved(settings_.frames_limit / 2 + pause_frames());
  paused_ = input_ == Input::open && (was ? stays : full() || crowded);
  if (was && !paused_ && client_listens_) client_->resume();
  const bool had_room = std::exchange(has_room_, room() > 0);
  if (!had_room && has_room_ && client_listens_) client_->has_room();
}

std::uint64_t Stream::room() const {
  const bool scarce = links_.blocks.scarce();
  const bool sheds = settings_.shed_after && !scarce;
  if (input_ != Input::open || !(sheds || relieved(settings_.frames_limit / 2))) return 0;
  const std::uint64_t limit = settings_.frames_limit;
  const std::uint64_t free = limit - std::min(held(), limit);
  return Intake::client_frames(scarce ? std::min(free, limit / 2) : free);
}

}  // namespace millrace
