// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

// Why a message or a stream is refused. The word goes into messages, the number is the close code
// where the connection ends for it.
enum class ErrorCode : std::uint8_t {
  schema,            // 4400 not a message of the protocol
  unauthenticated,   // 4401
  forbidden,         // 4403
  unknown_stream,    // 4404
  unknown_pipeline,  // 4404
  idle,              // 4408 nothing was heard for too long
  conflict,          // 4409 the name is taken
  too_long,          // 4413
  format,            // 4415 a sample format, rate or shape that the pipeline does not take
  values,            // 4422 the values cannot be: half a frame, NaN, infinity
  too_fast,          // 4429
  no_worker,         // 1013 no worker came in time
  no_room,           // 1013 as many streams as there may be
  stopping,          // 1012 the service stops
  slow_reader,       // 1008 results were not read
  worker_failed,     // 1011 workers were lost over rows of the stream
  internal,          // 1011
};

constexpr std::string_view name_of(ErrorCode code) {
  constexpr std::string_view names[] = {
      "schema",        "unauthenticated", "forbidden", "unknown_stream", "unknown_pipeline",
      "idle",          "conflict",        "too_long",  "format",         "values",
      "too_fast",      "no_worker",       "no_room",   "stopping",       "slow_reader",
      "worker_failed", "internal"};
  return names[static_cast<int>(code)];
}

constexpr std::uint16_t close_code(ErrorCode code) {
  constexpr std::uint16_t codes[] = {4400, 4401, 4403, 4404, 4404, 4408, 4409, 4413, 4415,
                                     4422, 4429, 1013, 1013, 1012, 1008, 1011, 1011};
  return codes[static_cast<int>(code)];
}

}  // namespace millrace
