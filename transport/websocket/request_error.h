// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/error_code.h"
#include "transport/net/stats.h"

namespace millrace {

// Why an upgrade is refused, as the client is told (docs/protocol.md).
struct RequestError {
  unsigned status = 400;    // of HTTP
  std::string parameter{};  // the one at fault, or empty
  std::string message{};    // for a human; no path, no address
  std::optional<std::chrono::seconds> retry_after{};
  Refusal reason = Refusal::parameter;  // how it is counted
};

// Its code, the same over each protocol.
constexpr ErrorCode code_of(const RequestError& error) {
  switch (error.status) {
    case 403: return ErrorCode::forbidden;
    case 404: return error.parameter.empty() ? ErrorCode::schema : ErrorCode::unknown_pipeline;
    case 409: return ErrorCode::conflict;
    case 414: return ErrorCode::too_long;
    case 415: return ErrorCode::format;
    case 503: return error.reason == Refusal::draining ? ErrorCode::stopping : ErrorCode::no_room;
    default: return ErrorCode::schema;
  }
}

}  // namespace millrace
