// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "monitoring/service_stats.h"

namespace millrace {

// Decides on it. A measure is taken when memory is used to 80, 90 or 95 percent, and ends when it
// is 5 percent below that, so that it does not come and go. It has no clock and reads nothing.
// Confined to one thread.
class MemoryPressure {
 public:
  // Bytes that may still be taken before anything is to be done.
  static constexpr std::uint64_t spare(std::uint64_t used, std::uint64_t most) {
    const std::uint64_t begin = most / 100 * begins[1];
    return begin - std::min(begin, used);
  }

  // So many bytes are used of the most that there are; what is to be done now.
  Overload look(std::uint64_t used, std::uint64_t most) {
    const std::uint64_t percent = most > 0 ? used * 100 / most : 100;
    while (level_ + 1 < begins.size() && percent >= begins[level_ + 1]) ++level_;
    while (level_ > 0 && percent < begins[level_] - relief) --level_;
    return static_cast<Overload>(level_);
  }

 private:
  static constexpr std::array<std::uint64_t, count_of<Overload>()> begins = {0, 80, 90, 95};
  static constexpr std::uint64_t relief = 5;

  std::size_t level_ = 0;
};

// What may be taken until memory is looked at again.
struct Allowance {
  std::uint64_t streams = 0;  // in all
  std::uint64_t bytes = 0;    // of frames and what is read ahead
};

// How `spare` bytes are dealt out. Besides its frames and results a stream takes at most `bare`
// bytes, and `message` bytes for a message that comes in. An open stream may still take all of
// both. New streams get a quarter of what is left then.
constexpr Allowance allowance(std::uint64_t spare, std::uint64_t open, std::uint64_t bare,
                              std::uint64_t message) {
  const auto rest = [spare](std::uint64_t taken) { return spare - std::min(spare, taken); };
  const std::uint64_t for_new = rest(open * (bare + message)) / 4;
  return {.streams = open + for_new / (bare + message), .bytes = rest(open * bare + for_new)};
}

// Something that is done in one of `every` looks at most. Confined to one thread.
class Turn {
 public:
  explicit Turn(int every) : every_(every) {}

  // One more look.
  void look() { wait_ -= wait_ > 0; }
  // True if it may be done now; then not in the next looks.
  bool take() {
    if (wait_ > 0) return false;
    wait_ = every_;
    return true;
  }

 private:
  const int every_;
  int wait_ = 0;  // looks
};

}  // namespace millrace
