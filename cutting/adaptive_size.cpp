// SPDX-License-Identifier: Apache-2.0
#include "cutting/adaptive_size.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>

namespace millrace {
namespace {

using namespace std::chrono_literals;

// The quiet time before a size that has not failed. Short, so that streams of a few seconds find a
// smaller size too when the load eases.
constexpr Duration first_quiet = 1500ms;
// The quiet times after one failure, and after many.
constexpr Duration least_quiet = 20s, most_quiet = 160s;
constexpr std::uint8_t most_failures = 4;  // then the quiet time is most_quiet
static_assert(least_quiet * (1 << (most_failures - 1)) == most_quiet);

// A queue is given this time to drain after a change up.
constexpr Duration settle = 2s;
// A change up skips a size if the wait is above its limit by this factor.
constexpr double skips = 1.5;

// The share of the streams that have had their turn is 2^-halvings at the end of the quiet time,
// and doubles with each `bodies_per_doubling` bodies. The effect on the waits can then be seen
// before many others follow. The last half goes at once: if a mixture of sizes is slower than
// either size, because the rows of a batch are as wide as the widest, it must be short.
constexpr double halvings = 6;
constexpr double bodies_per_doubling = 2.5;
constexpr double all_turns = (halvings - 1) * bodies_per_doubling;

std::size_t index_of(const SizeList& sizes, std::uint32_t size) {
  std::size_t index = 0;
  while (index + 1 < sizes.size() && sizes[index] < size) ++index;
  return index;
}

}  // namespace

AdaptiveSize::AdaptiveSize(const Pipeline& pipeline, std::string_view stream, std::uint32_t begin)
    : pipeline_(pipeline), key_(draw_key(0, stream)), index_(index_of(pipeline.sizes, begin)) {
  assert(pipeline.sizes.size() <= most_sizes);
  wait_for_turn(0);
}

std::uint32_t AdaptiveSize::next(Duration waited, std::uint64_t position) {
  if (waited > limit_up(index_)) {
    if (waited > waited_at_up_ || position >= settle_until_) go_up(waited, position);
    wait_for_turn(position);
  } else if (index_ > 0) {
    waited_at_up_ = {};
    const std::uint64_t quiet_until = quiet_from_ + frames(quiet_time());
    if (waited > limit_down(index_)) {
      // The streams whose turn was before have shown that the smaller size does not cope.
      if (position >= quiet_until) has_failed(index_ - 1);
      wait_for_turn(position);
    } else if (position >= quiet_until + turn_) {
      const auto turns = static_cast<std::uint64_t>(all_turns * pipeline_.sizes[index_]);
      failures_[index_--] = 0;
      wait_for_turn(quiet_until + turns);  // the same for all streams
    }
  }
  before_ = position;
  return pipeline_.sizes[index_];
}

void AdaptiveSize::go_up(Duration waited, std::uint64_t position) {
  const SizeList& sizes = pipeline_.sizes;
  if (index_ + 1 == sizes.size()) return;
  std::size_t to = index_ + 1;
  const double length = std::chrono::duration<double>(waited).count();
  const auto skipped = [&](std::size_t index) {
    return length > skips * std::chrono::duration<double>(limit_up(index)).count();
  };
  while (to + 1 < sizes.size() && skipped(to)) ++to;
  const auto fits = [&](std::size_t index) {
    return position == 0 || before_ / sizes[index] != position / sizes[index];
  };
  while (to > index_ && !fits(to)) --to;
  if (to == index_) return;
  has_failed(index_);
  index_ = to;
  waited_at_up_ = waited;
  settle_until_ = position + frames(settle);
}

void AdaptiveSize::has_failed(std::size_t index) {
  if (failures_[index] < most_failures) ++failures_[index];
}

Duration AdaptiveSize::quiet_time() const {
  const std::uint8_t failures = failures_[index_ - 1];
  return failures == 0 ? first_quiet : least_quiet * (1 << (failures - 1));
}

void AdaptiveSize::wait_for_turn(std::uint64_t quiet_from) {
  quiet_from_ = quiet_from;
  const std::uint64_t number = drawn_number(key_, draws_++);
  const double fraction = (static_cast<double>(number >> 11) + 1) * 0x1p-53;  // in (0, 1]
  const double doublings = std::clamp(halvings + std::log2(fraction), 0.0, halvings - 1);
  turn_ = static_cast<std::uint64_t>(doublings * bodies_per_doubling * pipeline_.sizes[index_]);
}

// A row waits for at most two batches, one in the worker and one behind it, and a size copes only
// if a batch takes less time than a body: so a row waits for less than two of the smallest bodies.
// At larger sizes batches may take longer; but a wait of a quarter of the largest size is enough to
// prefer that size.
Duration AdaptiveSize::limit_up(std::size_t index) const {
  const SizeList& sizes = pipeline_.sizes;
  const double copes = 2.25 * sizes[index], prefers = 0.25 * sizes.largest();
  return pipeline_.max_wait + time(std::max(2.25 * sizes.smallest(), std::min(copes, prefers)));
}

Duration AdaptiveSize::limit_down(std::size_t index) const {
  assert(index >= 1);
  return limit_up(index - 1) - time(0.25 * pipeline_.sizes.smallest());
}

std::uint64_t AdaptiveSize::frames(Duration time) const {
  return static_cast<std::uint64_t>(std::chrono::duration<double>(time).count() * pipeline_.rate);
}

Duration AdaptiveSize::time(double frames) const {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(frames / pipeline_.rate));
}

}  // namespace millrace
