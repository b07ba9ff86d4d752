// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/stats.h"

namespace millrace {

enum class LogLevel : std::uint8_t { info, warning, error };

// A step of the wall clock.
enum class ClockJump : std::uint8_t { forward, backward };

// The actions against memory pressure. Each includes those before it.
enum class Overload : std::uint8_t {
  none,
  reject_streams,  // new streams are refused
  shed_recording,  // nothing more is recorded
  close_idle,      // idle clients are closed sooner
  reset_largest,   // the streams that hold the most memory are ended, one by one
};

// The process. Written by the main thread.
struct ServiceStats {
  Gauge ready;                         // 1 if /readyz answers 200; set for each scrape
  Gauge draining;                      // 1 from SIGTERM on
  Gauge reloaded;                      // 1 if the last reload succeeded; the start counts as one
  Gauge reloaded_at;                   // last successful reload: seconds since 1970
  Gauge certificate_expires;           // end of the TLS certificate: seconds since 1970; 0: no TLS
  Gauge buffer_limit;                  // upper bound of all frame buffers, in bytes
  Gauge memory_limit;                  // bytes available to the process
  Labelled<Gauge, Overload> overload;  // 1 while the action is active; `none` stays 0
  Labelled<Counter, ClockJump> jumps;
};

// A device. Written by the main thread.
struct DeviceStats {
  Gauge healthy;  // 1 while the device may be used
};

// One thread of the service. Written by that thread.
struct ThreadStats {
  Histogram lag{buckets::fast};  // how late a periodic timer fired; io threads only
  // Warnings and errors, including those that the rate limit holds back.
  Labelled<Counter, LogLevel> logged;
};

// The log. Written by the log's thread.
struct LogStats {
  Counter dropped;  // lines that came too fast or could not be written
};

}  // namespace millrace
