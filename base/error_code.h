// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/enum_names.h"

namespace millrace {

// Why a message or a stream is refused. The name of the value is sent in messages.
enum class ErrorCode : std::uint8_t {
  schema,  // not a message of the protocol
  unauthenticated,
  forbidden,
  unknown_stream,
  unknown_pipeline,
  idle,      // the client was silent for too long
  conflict,  // an open connection has the stream's name
  too_long,
  format,  // a sample format, rate or shape that the pipeline does not accept
  values,  // part of a frame, NaN, infinity, or a position out of range
  too_fast,
  no_worker,      // no worker had a free slot in time
  no_room,        // a limit on streams or memory is reached
  stopping,       // the service stops
  slow_reader,    // the client did not read its results
  worker_failed,  // workers were lost over rows of the stream
  internal,
};

// The close code of a WebSocket connection that ends with this error.
constexpr std::uint16_t close_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::schema: return 4400;
    case ErrorCode::unauthenticated: return 4401;
    case ErrorCode::forbidden: return 4403;
    case ErrorCode::unknown_stream: return 4404;
    case ErrorCode::unknown_pipeline: return 4404;
    case ErrorCode::idle: return 4408;
    case ErrorCode::conflict: return 4409;
    case ErrorCode::too_long: return 4413;
    case ErrorCode::format: return 4415;
    case ErrorCode::values: return 4422;
    case ErrorCode::too_fast: return 4429;
    case ErrorCode::no_worker: return 1013;
    case ErrorCode::no_room: return 1013;
    case ErrorCode::stopping: return 1012;
    case ErrorCode::slow_reader: return 1008;
    case ErrorCode::worker_failed: return 1011;
    case ErrorCode::internal: return 1011;
  }
  return 1011;
}

}  // namespace millrace
