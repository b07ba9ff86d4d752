// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "schemas/stream_request.h"
#include "transport/websocket/connection.h"

namespace millrace {

// Where a service listens: "ws://127.0.0.1:8080", "tcp://127.0.0.1:5555".
struct ServiceUrl {
  std::string host;
  std::string port = "80";

  std::string host_field() const;  // of HTTP
};

// Nothing for anything but ws://HOST[:PORT][/ or /v1/stream].
std::optional<ServiceUrl> parse_service_url(std::string_view url);
// Nothing for anything but tcp://HOST[:PORT]; 5555 where there is none.
std::optional<ServiceUrl> parse_tcp_url(std::string_view url);

// Why there is no connection: what the server answered, or that it is not there.
struct ConnectError {
  unsigned status = 0;  // of HTTP; 0: no answer
  std::string message;  // the answer's body, where there is one
  std::optional<std::chrono::seconds> retry_after{};
};

// Opens a stream: the client's end of what StreamServer does. Frames and commands
// (client_messages.h) go through the connection, and what it receives is of server_messages.h.
Task<Result<std::unique_ptr<Connection>, ConnectError>> open_stream(Executor executor,
                                                                    ServiceUrl url,
                                                                    StreamRequest request);

}  // namespace millrace
