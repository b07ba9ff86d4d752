// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"

namespace millrace {

// When the events of one stream are replayed. Pure.
struct Pace {
  double speed = 0;  // 1: at the recorded times; N: N times as fast; 0: at once
  Time opened{};     // when the stream opened, by the clock of its recording
  Time begun{};      // when its replay began

  // When the event that was recorded at `at` is due. An event that was recorded before the open is
  // due at once.
  Time due(Time at) const {
    if (speed <= 0) return begun;
    const std::chrono::duration<double, Duration::period> later(at - opened);
    return begun + std::max(Duration{}, std::chrono::duration_cast<Duration>(later / speed));
  }
};

}  // namespace millrace
