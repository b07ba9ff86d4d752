// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/stats.h"
#include "service/overload.h"

namespace millrace {

enum class LogLevel : std::uint8_t { info, warning, error };
inline constexpr int log_levels = 3;

constexpr std::string_view name_of(LogLevel level) {
  constexpr std::string_view names[log_levels] = {"info", "warning", "error"};
  return names[static_cast<int>(level)];
}

// A step of the wall clock.
enum class ClockJump : std::uint8_t { forward, backward };
inline constexpr int clock_jumps = 2;

constexpr std::string_view name_of(ClockJump direction) {
  return direction == ClockJump::forward ? "forward" : "backward";
}

// The process. The main thread writes it.
struct ServiceStats {
  Gauge ready;         // 1 if /readyz answers 200; set for each scrape
  Gauge draining;      // 1 from SIGTERM on
  Gauge reloaded;      // 1 if the last reload succeeded; so does the start
  Gauge reloaded_at;   // the last that succeeded: seconds since 1970
  Gauge buffer_limit;  // bytes that all frame buffers may hold
  Gauge memory_limit;  // bytes that the process could have
  Labelled<Gauge, Overload, overloads> overload;  // 1 while it is done; not of `none`
  Labelled<Counter, ClockJump, clock_jumps> jumps;
};

// A device. The main thread writes it.
struct DeviceStats {
  Gauge healthy;  // 1 while it may be used
};

// One thread of the service, which writes it.
struct ThreadStats {
  Histogram lag{buckets::fast};  // how late a periodic timer fired; io threads only
  // Warnings and errors, those that the rate limit holds back too.
  Labelled<Counter, LogLevel, log_levels> logged;
};

// The log. Its own thread writes it.
struct LogStats {
  Counter dropped;  // lines that came too fast or could not be written
};

}  // namespace millrace
