// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "transport/stats.h"

namespace millrace {

// Why an upgrade is refused, as the client is told (docs/protocol.md).
struct RequestError {
  unsigned status = 400;    // of HTTP
  std::string parameter{};  // the one at fault, or empty
  std::string message{};    // for a human; no path, no address
  std::optional<std::chrono::seconds> retry_after{};
  Refusal reason = Refusal::parameter;  // how it is counted
};

}  // namespace millrace
