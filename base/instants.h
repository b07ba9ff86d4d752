// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/time.h"

namespace millrace {

// The way of a row, instant by instant. The spans between neighbours are the stages; they add up
// to chunk-to-result.
struct Instants {
  Time arrived;  // the last frame of its window, or the event that cut it, was read
  Time ready;    // it was cut
  Time closed;   // its batch closed
  Time copied;   // its batch lay where the worker reads it
  Time taken;    // the worker began
  Time done;     // the service has its answer
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
