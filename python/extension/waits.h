// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/time.h"
#include "python/extension/without_gil.h"

namespace millrace::python {

// How often a wait runs Python's signal handlers. Python's C handler only sets a flag, and does not
// always interrupt the wait.
inline constexpr Duration signal_interval = std::chrono::milliseconds(100);

inline constexpr double longest_wait = 3e7;  // seconds, about a year: sums of times stay in range

// Requires: seconds >= 0.
inline Duration duration_of(double seconds) {
  const std::chrono::duration<double> wait(std::min(seconds, longest_wait));
  return std::chrono::duration_cast<Duration>(wait);
}

inline double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

// The time at which a wait ends: Time::max() for nullopt, Time::min() (no wait) for 0.
inline Time deadline_in(std::optional<double> seconds) {
  if (!seconds) return Time::max();
  if (*seconds <= 0) return Time::min();
  return Clock::now() + duration_of(*seconds);
}

// Calls `attempt(until)` without the GIL until its outcome is true or the deadline has passed, and
// runs Python's signal handlers meanwhile. Returns the last outcome.
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
