// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace millrace {

// The clock of all instants and deadlines. Steady: steps of the wall clock do not affect it.
// Values are comparable between processes of one machine, and only there.
using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using Duration = std::chrono::nanoseconds;

// An instant as nanoseconds, for messages between processes of one machine.
constexpr std::int64_t to_wire(Time time) {
  return std::chrono::duration_cast<Duration>(time.time_since_epoch()).count();
}
constexpr Time from_wire(std::int64_t nanoseconds) {
  return Time(std::chrono::duration_cast<Clock::duration>(Duration(nanoseconds)));
}

}  // namespace millrace
