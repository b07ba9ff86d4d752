// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"

namespace millrace {

// Detects threads that hang. Each thread counts the ticks of a periodic timer. The time without a
// tick is counted in calls of update(), not by a clock, so that a process that was stopped for a
// while does not appear to hang. Confined to one thread.
class ThreadWatch {
 public:
  // `ticks`: the count of each thread. `period`: the planned time between two updates.
  void update(std::span<const std::uint64_t> ticks, Duration period) {
    threads_.resize(ticks.size());
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      Thread& thread = threads_[i];
      thread.silence = ticks[i] == thread.ticks ? thread.silence + period : Duration();
      thread.ticks = ticks[i];
    }
  }

  // The longest time since the last tick of a thread.
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

// Each thread ticks once a second. If one does not tick for watchdog_silence, WATCHDOG=1 is no
// longer sent. From dead_silence on, /livez answers 503.
inline constexpr Duration watchdog_silence = std::chrono::seconds(3);
inline constexpr Duration dead_silence = std::chrono::seconds(5);

}  // namespace millrace
