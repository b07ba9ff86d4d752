// SPDX-License-Identifier: Apache-2.0
// When a stream pauses its client, and the credit that it gives to it.
#include <algorithm>
#include <chrono>
#include <utility>

#include "streams/stream.h"

namespace millrace {

// Without the messages for the next row, which only the client can complete.
std::uint64_t Stream::held() const {
  const std::size_t posts = posts_ ? posts_->bytes_with_rows() : 0;
  return cutter_.frames().held() + intake_.kept_apart() + posts / settings_.type.bytes();
}

std::uint64_t Stream::held_bytes() const {
  return held() * settings_.type.bytes() + (posts_ ? posts_->bytes_for_next_row() : 0);
}

// Everything that has arrived is cut: the next row depends on the client alone.
bool Stream::waits_for_client() const {
  return intake_.empty() && !held_up_ && cutter_.rows().ready() < max_ready_rows;
}

// True if the client is to be paused because of its messages. While the stream waits for the
// client, those for the next row do not count: the pause would keep the row from coming. With
// shed_after nothing pauses the client; messages beyond the bound are rejected.
bool Stream::posts_full() const {
  if (!posts_ || settings_.shed_after) return false;
  const std::size_t longest = settings_.longest_post;
  if (waits_for_client()) return posts_->bytes_with_rows() > kept_posts / 2 * longest;
  return !posts_->has_room(longest, longest);
}

bool Stream::posts_relieved() const {
  if (!posts_ || settings_.shed_after) return true;
  if (waits_for_client()) return !posts_full();
  return posts_->bytes() <= kept_posts / 4 * settings_.longest_post;
}

// The events that wait, without messages and the frames that each of them keeps from being joined:
// their bytes are bounded.
std::size_t Stream::waiting_events() const {
  return intake_.waiting() - std::min(intake_.waiting(), posts_ ? 2 * posts_->unfed() : 0);
}

// While blocks are scarce, rows at the worker do not count: otherwise a client that sends in real
// time would fall behind by each of their round trips.
bool Stream::full() const {
  // Then only the client can complete the next row.
  if (cutter_.rows().empty() && !held_up_) return false;
  if (held() >= settings_.frames_limit + pause_frames() || posts_full()) return true;
  const std::uint64_t to_come = cutter_.frames_to_come() + intake_.kept_apart();
  return links_.blocks.scarce() && to_come >= settings_.chunk.width();
}

// Without outstanding rows only written() can resume it. If unwritten results do not hold it up
// either, it holds less than a window.
bool Stream::relieved(std::uint64_t at_most) const {
  if (cutter_.rows().empty()) return !held_up_;
  if (links_.blocks.scarce() && cutter_.rows().ready() > 0) return false;
  return held() <= at_most && posts_relieved() && waiting_events() <= WaitingEvents::pause_at / 2;
}

void Stream::measure_pause(Time now) {
  if (paused_ && has_much_ && now > settled_) paused_for_ += now - settled_;
  settled_ = std::max(settled_, now);
}

// The number of frames above the limit that may be held now.
std::uint64_t Stream::pause_frames() const {
  const double seconds = std::chrono::duration<double>(paused_for_).count();
  return std::min(settings_.pause_frames,
                  static_cast<std::uint64_t>(2 * settings_.type.rate * seconds));
}

void Stream::update_pause() {
  if (held() <= settings_.frames_limit / 2) paused_for_ = {};
  const bool many_waiting = waiting_events() >= WaitingEvents::pause_at;
  const bool was = paused_;
  has_much_ =
      has_much_ ? !relieved(settings_.frames_limit / 2 + pause_frames()) : full() || many_waiting;
  paused_ = input_ == Input::open && (has_much_ || intake_.too_fast());
  if (was && !paused_ && client_listens_) client_->resume();
  const bool had_credit = std::exchange(has_credit_, credit() > 0);
  if (!had_credit && has_credit_ && client_listens_) client_->credit_available();
}

std::uint64_t Stream::credit() const {
  const bool scarce = links_.blocks.scarce();
  const bool sheds = settings_.shed_after && !scarce;
  if (input_ != Input::open || intake_.too_fast()) return 0;
  if (!sheds && !relieved(settings_.frames_limit / 2)) return 0;
  const std::uint64_t limit = settings_.frames_limit;
  const std::uint64_t free = limit - std::min(held(), limit);
  const std::uint64_t credit =
      intake_.client_frames_within(scarce ? std::min(free, limit / 2) : free);
  // Only the client can complete the next window, so it must be able to send something, however
  // long a frame is. The stream then holds less than a window.
  const bool waits_for_client = cutter_.rows().empty() && !held_up_;
  return std::max<std::uint64_t>(credit, waits_for_client ? 1 : 0);
}

}  // namespace millrace
