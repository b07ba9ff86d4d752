// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "service/config/options.h"

namespace millrace {

// When the phases of a drain end (docs/operations.md): `linger`, `notice`, and the rest of `drain`,
// in which streams end by themselves and what has not ended is then cut.
struct DrainTimes {
  Time linger_ends{};
  Time notice_ends{};
  Time gives_up{};  // streams that wait for a worker
  Time cuts{};      // connections
  Time ends{};      // the process
};

constexpr DrainTimes drain_times(Time begin, const LimitOptions& limits) {
  const Duration rest = limits.drain - limits.linger - limits.notice;
  DrainTimes times;
  times.linger_ends = begin + limits.linger;
  times.notice_ends = times.linger_ends + limits.notice;
  times.ends = begin + limits.drain;
  times.gives_up = times.ends - rest / 2;
  times.cuts = times.ends - std::min<Duration>(rest / 4, std::chrono::milliseconds(500));
  return times;
}

// The most that linger and notice may take: a quarter of `drain` is left for the rest.
constexpr Duration most_before_end(Duration drain) { return drain - drain / 4; }

}  // namespace millrace
