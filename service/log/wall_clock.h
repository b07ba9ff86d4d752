// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/time.h"
#include "monitoring/service_stats.h"

namespace millrace {

// The time since 1970. Only log lines and the time of the last reload use it. Durations and
// deadlines use Clock, so that a jump of the wall clock does not affect them.
Duration wall_clock();

// Detects that the wall clock was set: between two samples, it and the steady clock advanced by
// times that differ by more than `step`. NTP slews the clock by far less between two samples.
//
// Confined to one thread.
class WallClockJumps {
 public:
  static constexpr Duration step = std::chrono::milliseconds(500);

  // Takes the present time of both clocks. Returns nullopt if the wall clock was not set.
  std::optional<ClockJump> sample(Duration wall, Time steady) {
    const Duration offset = wall - steady.time_since_epoch();
    const Duration jump = offset - offset_.value_or(offset);
    offset_ = offset;
    if (jump > step) return ClockJump::forward;
    if (jump < -step) return ClockJump::backward;
    return std::nullopt;
  }

 private:
  std::optional<Duration> offset_;  // at the last sample
};

}  // namespace millrace
