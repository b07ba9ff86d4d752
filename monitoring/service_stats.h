// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/stats.h"

namespace millrace {

enum class LogLevel : std::uint8_t { info, warning, error };

// A step of the wall clock.
enum class ClockJump : std::uint8_t { forward, backward };

// The measures against memory pressure; each includes those before it.
enum class Overload : std::uint8_t {
  none,
  reject_streams,  // new streams are refused
  close_idle,      // idle clients are closed sooner
  reset_largest,   // the streams that hold the most memory are ended, one by one
};

// The process. The main thread writes it.
struct ServiceStats {
  Gauge ready;                         // 1 if /readyz answers 200; set for each scrape
  Gauge draining;                      // 1 from SIGTERM on
  Gauge reloaded;                      // 1 if the last reload succeeded; so does the start
  Gauge reloaded_at;                   // the last that succeeded: seconds since 1970
  Gauge buffer_limit;                  // bytes that all frame buffers may hold
  Gauge memory_limit;                  // bytes that the process could have
  Labelled<Gauge, Overload> overload;  // 1 while it is done; not of `none`
  Labelled<Counter, ClockJump> jumps;
};

// A device. The main thread writes it.
struct DeviceStats {
  Gauge healthy;  // 1 while it may be used
};

// One thread of the service, which writes it.
struct ThreadStats {
  Histogram lag{buckets::fast};  // how late a periodic timer fired; io threads only
  // Warnings and errors, those that the rate limit holds back too.
  Labelled<Counter, LogLevel> logged;
};

// The log. Its own thread writes it.
struct LogStats {
  Counter dropped;  // lines that came too fast or could not be written
};

}  // namespace millrace
