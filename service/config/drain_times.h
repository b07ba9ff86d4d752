// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "service/config/options.h"

namespace millrace {

// The times of a drain (docs/operations.md). Its phases are `linger`, `notice`, and the rest of
// `drain`. In the rest the service ends the streams, and their clients receive all results. At
// `cut_off` it cuts the connections that are left.
struct DrainTimes {
  Time linger_ends{};
  Time notice_ends{};
  Time worker_wait_ends{};  // streams that still wait for a worker end
  Time cut_off{};           // remaining connections are cut
  Time exit{};              // the process ends
};

constexpr DrainTimes drain_times(Time begin, const LimitOptions& limits) {
  const Duration rest = limits.drain - limits.linger - limits.notice;
  DrainTimes times;
  times.linger_ends = begin + limits.linger;
  times.notice_ends = times.linger_ends + limits.notice;
  times.exit = begin + limits.drain;
  times.worker_wait_ends = times.exit - rest / 2;
  times.cut_off = times.exit - std::min<Duration>(rest / 4, std::chrono::milliseconds(500));
  return times;
}

// The longest time of linger and notice together: a quarter of `drain` is left for the rest.
constexpr Duration most_before_end(Duration drain) { return drain - drain / 4; }

}  // namespace millrace
