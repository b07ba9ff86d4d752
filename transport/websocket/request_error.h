// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/error_code.h"
#include "transport/net/stats.h"

namespace millrace {

// Why a stream is refused, as sent to the client (docs/protocol.md).
struct RequestError {
  unsigned status = 400;    // HTTP status
  std::string parameter{};  // the parameter at fault, or empty
  std::string message{};    // for people; contains no path and no address
  std::optional<std::chrono::seconds> retry_after{};
  Refusal reason = Refusal::parameter;  // for the metrics
  bool logged = false;                  // the log has a line about it
};

// The error of a client without an accepted token.
inline RequestError unauthenticated(std::string_view why) {
  return {.status = 401, .message = std::string(why), .reason = Refusal::unauthenticated};
}

// The error of a client that may not use the pipeline.
inline RequestError forbidden(std::string_view pipeline) {
  return {.status = 403,
          .parameter = "pipeline",
          .message = "the client may not use the pipeline " + std::string(pipeline),
          .reason = Refusal::parameter};
}

// The code of the error, the same over WebSocket and ZeroMQ.
constexpr ErrorCode code_of(const RequestError& error) {
  switch (error.status) {
    case 401: return ErrorCode::unauthenticated;
    case 403: return ErrorCode::forbidden;
    case 404:
      if (error.reason == Refusal::resume) return ErrorCode::unknown_stream;
      return error.parameter.empty() ? ErrorCode::schema : ErrorCode::unknown_pipeline;
    case 409: return ErrorCode::conflict;
    case 414: return ErrorCode::too_long;
    case 415: return ErrorCode::format;
    case 429: return ErrorCode::too_fast;
    case 503: return error.reason == Refusal::draining ? ErrorCode::stopping : ErrorCode::no_room;
    default: return ErrorCode::schema;
  }
}

}  // namespace millrace
