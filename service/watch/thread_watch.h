// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"

namespace millrace {

// Notices threads that hang: each counts ticks of a periodic timer. Silence is counted in calls of
// look(), not by a clock: a process that was stopped for a while does not count as hanging.
// Confined to one thread.
class ThreadWatch {
 public:
  // `ticks` are those of each thread so far; `period` is the time since the last look.
  void look(std::span<const std::uint64_t> ticks, Duration period) {
    threads_.resize(ticks.size());
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      Thread& thread = threads_[i];
      thread.silence = ticks[i] == thread.ticks ? thread.silence + period : Duration();
      thread.ticks = ticks[i];
    }
  }

  // The longest time for which one of them has not ticked.
  Duration silence() const {
    return threads_.empty() ? Duration() : std::ranges::max(threads_, {}, &Thread::silence).silence;
  }

 private:
  struct Thread {
    std::uint64_t ticks = 0;
    Duration silence{};
  };
  std::vector<Thread> threads_;
};

// Each thread ticks once a second. If one has not ticked for this time, WATCHDOG=1 is no longer
// sent, and later /livez answers 503.
inline constexpr Duration watchdog_silence = std::chrono::seconds(3);
inline constexpr Duration dead_silence = std::chrono::seconds(5);

}  // namespace millrace
