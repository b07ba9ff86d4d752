// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "load/load_run.h"

namespace millrace::load {

// True if the traffic was complete and correct:
// - no stream was refused or broken;
// - no frame, row or result was lost, shed, duplicated, out of order, damaged, an error, or of
//   another stream;
// - with a worker that answers, every row was answered,
// - every commit was finished, except with Deepgram, which need not answer each,
// - each message of the own worker was received, if no stream vanished.
bool is_whole(const LoadReport& report);

// Frames of ended streams that were sent, but are not in a row and were not reported as shed.
std::uint64_t lost_frames(const LoadReport& report);

// Rows of ended streams without a result. In a protocol without totals, rows of the own worker; 0
// if streams vanished. A client of OpenAI has left when the last row of its stream is done: what
// the conversion of the rate still had after the last commit.
std::uint64_t unanswered_rows(const LoadReport& report);

// Times from the disconnection of a client until the own worker took the ABORT of its stream.
Histogram abort_times(const LoadReport& report);
// With Phase::step, for each packet number: the time from when the packets of all streams were due
// until the worker took the last row that they completed.
Histogram burst_times(const LoadReport& report);

// The 99th percentile of the latency: of results if there are any, otherwise of commits, otherwise
// of rows; nullopt if there are none of these.
std::optional<Duration> p99_of(const LoadReport& report);

// True if the figures are those of the generator: the 99th percentile of its own send delay is more
// than 1 ms, and more than half of p99_of().
bool is_generator_late(const LoadReport& report);

// CPU time used in the measured time. Clients: per packet sent in this time. Worker: per row
// returned in this time. Server: per row if the run has its own worker (waiting packets have used
// no CPU time yet), otherwise per packet.
struct CpuCost {
  Duration clients{}, worker{};
  std::optional<Duration> server{};  // nullopt if it was not measured the whole time
};
CpuCost cpu_cost(const LoadReport& report);

// Growth of the service's resident anonymous memory since before the first stream, in bytes per
// stream: idle with all streams open, and at the end of the measured time.
struct StreamBytes {
  double idle = 0, streaming = 0;
};
// Nullopt if the service was not measured.
std::optional<StreamBytes> stream_bytes(const LoadReport& report);

}  // namespace millrace::load
