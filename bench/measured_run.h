// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "bench/cpu_times.h"
#include "bench/row_check.h"
#include "bench/schedule.h"

namespace millrace::bench {

// One run of the service under the load of a schedule, and what came of it.
struct MeasuredRun {
  RowCheck::Seen seen;
  CpuTimes cpu;              // of the time that counts
  std::uint64_t sent = 0;    // packets
  std::uint64_t lost = 0;    // of them
  std::uint32_t broken = 0;  // streams
  std::string why;           // of one of them

  bool whole() const { return lost + seen.repeated + seen.damaged + broken == 0; }
  // One line.
  void print_losses() const;
};

// `max_wait` is the batch rule's, whose `rows` is 64. Throws std::runtime_error, WorkerError.
MeasuredRun measure(const std::filesystem::path& program, const Packets& packets,
                    Schedule& schedule, Duration max_wait);

}  // namespace millrace::bench
