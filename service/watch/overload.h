// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "monitoring/service_stats.h"

namespace millrace {

// Chooses the memory-pressure action. The actions begin at 80, 90, 90 and 95 % of the limit. Each
// ends 5 percentage points below its begin, so that it does not flap. Recording is shed before
// clients notice anything: the actions after it begin at the next update at the earliest. It has no
// clock and does no I/O. Confined to one thread.
class MemoryPressure {
 public:
  // Bytes that may still be used before the first action begins.
  static constexpr std::uint64_t spare(std::uint64_t used, std::uint64_t limit) {
    const std::uint64_t begin = limit / 100 * begins[1];
    return begin - std::min(begin, used);
  }

  // Takes the used bytes and their limit now; returns the action to apply.
  Overload update(std::uint64_t used, std::uint64_t limit) {
    const std::uint64_t percent = limit > 0 ? used * 100 / limit : 100;
    const std::size_t highest = level_ < shed_recording ? shed_recording : begins.size() - 1;
    while (level_ < highest && percent >= begins[level_ + 1]) ++level_;
    while (level_ > 0 && percent < begins[level_] - hysteresis) --level_;
    return static_cast<Overload>(level_);
  }

 private:
  static constexpr std::array<std::uint64_t, count_of<Overload>()> begins = {0, 80, 90, 90,
                                                                             95};  // %
  static constexpr auto shed_recording = static_cast<std::size_t>(Overload::shed_recording);
  static constexpr std::uint64_t hysteresis = 5;  // percentage points

  std::size_t level_ = 0;
};

// The limits until the next check of memory.
struct Allowance {
  std::uint64_t streams = 0;  // open streams, new ones included
  std::uint64_t bytes = 0;    // further bytes of frames and of read-ahead
};

// Divides `spare` bytes. Besides its frames and results, a stream takes at most `bare` bytes, and
// `message` bytes for a message that is being received. Both are reserved for each open stream. A
// quarter of the rest is for new streams.
constexpr Allowance allowance(std::uint64_t spare, std::uint64_t open, std::uint64_t bare,
                              std::uint64_t message) {
  const auto rest = [spare](std::uint64_t used) { return spare - std::min(spare, used); };
  const std::uint64_t for_new = rest(open * (bare + message)) / 4;
  return {.streams = open + for_new / (bare + message), .bytes = rest(open * bare + for_new)};
}

// Limits an operation to one in `ticks` ticks. Confined to one thread.
class Cooldown {
 public:
  explicit Cooldown(int ticks) : ticks_(ticks) {}

  void tick() { left_ -= left_ > 0; }
  // True if the operation may run now; then false until `ticks` ticks have passed.
  bool try_start() {
    if (left_ > 0) return false;
    left_ = ticks_;
    return true;
  }

 private:
  const int ticks_;
  int left_ = 0;  // ticks
};

}  // namespace millrace
