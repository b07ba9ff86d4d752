// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "schemas/stream_request.h"
#include "transport/websocket/checked_access.h"
#include "transport/websocket/connection.h"

namespace millrace {

// Why a connection could not be opened.
struct ConnectError {
  unsigned status = 0;  // HTTP status; 0 without a valid answer
  std::string message;  // the body of the answer, or a description of the error
  std::optional<std::chrono::seconds> retry_after{};
};

// Connects to StreamServer and opens a stream. Send frames and commands (client_messages.h) over
// the connection; it receives the messages of server_messages.h.
Task<Result<std::unique_ptr<Connection>, ConnectError>> open_stream(Executor executor,
                                                                    CheckedAccess access,
                                                                    StreamRequest request);

}  // namespace millrace
