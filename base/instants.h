// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/time.h"

namespace millrace {

// The instants in the life of a row. The spans between neighbours are the stages, which add up to
// the latency from chunk to result.
struct Instants {
  Time arrived;  // the last frame of its window, or the event that cut it, was read
  Time ready;    // the chunker cut the row
  Time closed;   // its batch closed
  Time copied;   // its batch was in memory that the worker reads
  Time taken;    // the worker took the batch
  Time done;     // the service received the answer
  Time written;  // its result was written to the socket
};

// The spans between neighbouring instants.
inline constexpr int stage_count = 6;
inline constexpr std::array<std::string_view, stage_count> stage_names{
    "chunk", "batch", "copy", "handover", "compute", "result"};

// The six stages in the order of stage_names.
constexpr std::array<Duration, stage_count> stages(const Instants& at) {
  return {at.ready - at.arrived, at.closed - at.ready, at.copied - at.closed,
          at.taken - at.copied,  at.done - at.taken,   at.written - at.done};
}

}  // namespace millrace
