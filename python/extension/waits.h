// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/time.h"
#include "python/extension/without_gil.h"

namespace millrace::python {

// Python's own signal handler only sets a flag, and does not always interrupt the wait.
inline constexpr Duration signal_interval = std::chrono::milliseconds(100);

inline constexpr double longest_wait = 3e7;  // seconds, a year: so that sums of times stay in range

// Requires: seconds >= 0.
inline Duration duration_of(double seconds) {
  const std::chrono::duration<double> wait(std::min(seconds, longest_wait));
  return std::chrono::duration_cast<Duration>(wait);
}

// 0 does not wait.
inline Time deadline_in(std::optional<double> seconds) {
  if (!seconds) return Time::max();
  if (*seconds <= 0) return Time::min();
  return Clock::now() + duration_of(*seconds);
}

// Calls `attempt(until)` without the GIL until it gives something, or until the deadline, and runs
// Python's signal handlers meanwhile.
template <class Attempt>
auto wait_for(Time deadline, Attempt attempt) {
  for (;;) {
    auto outcome = [&] {
      const WithoutGil waits;
      return attempt(deadline == Time::min() ? deadline
                                             : std::min(deadline, Clock::now() + signal_interval));
    }();
    if (outcome || deadline <= Clock::now()) return outcome;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

}  // namespace millrace::python
