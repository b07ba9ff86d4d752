// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/time.h"
#include "monitoring/service_stats.h"

namespace millrace {

// Since 1970. Only lines of the log and the time of the last reload carry it. Durations and
// deadlines use Clock, so that a step of the wall clock expires none.
Duration wall_clock();

// Notices when the wall clock was set: when it went another way than the steady one by more than
// `step` from one look to the next. What NTP slews between two looks is far less.
class WallClockSteps {
 public:
  static constexpr Duration step = std::chrono::milliseconds(500);

  // What both clocks say now.
  std::optional<ClockJump> look(Duration wall, Time steady) {
    const Duration apart = wall - steady.time_since_epoch();
    const Duration jump = apart - apart_.value_or(apart);
    apart_ = apart;
    if (jump > step) return ClockJump::forward;
    if (jump < -step) return ClockJump::backward;
    return std::nullopt;
  }

 private:
  std::optional<Duration> apart_;  // at the last look
};

}  // namespace millrace
