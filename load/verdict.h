// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "load/load_run.h"

namespace millrace::load {

// Nothing was lost, shed, doubled, out of order, mixed up, damaged, refused or broken, and where
// our worker answers, all was answered.
bool is_whole(const LoadReport& report);

// Of streams that ended: sent, neither in a row nor said to be shed.
std::uint64_t lost_frames(const LoadReport& report);

// From a client's hanging up to ABORT at our worker; where all streams send at once, from then to
// the worker's taking the last row of it.
Histogram abort_times(const LoadReport& report);
Histogram burst_times(const LoadReport& report);

// What a bound on the latency is held against: of results where there are any, else of rows.
// Nothing where there were neither.
std::optional<Duration> p99_of(const LoadReport& report);

// CPU time between the begin of what counts and its end, for each packet that was sent in that
// time, or row that our worker gave back: what waits then costs something later.
struct Spent {
  Duration clients{}, worker{};
  std::optional<Duration> server{};  // nothing where it was not there all the time
};
Spent spent(const LoadReport& report);

// Bytes of its own that the service needed more than before any stream was open, for each.
struct StreamBytes {
  double idle = 0, streaming = 0;
};
std::optional<StreamBytes> stream_bytes(const LoadReport& report);

}  // namespace millrace::load
