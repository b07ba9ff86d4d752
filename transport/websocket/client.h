// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/stream_request.h"
#include "transport/websocket/websocket_connection.h"

namespace millrace {

// Where a service listens: "ws://127.0.0.1:8080", "tcp://127.0.0.1:5555".
struct ServiceUrl {
  std::string host;
  std::string port = "80";
};

// Nothing for anything but ws://HOST[:PORT][/ or /v1/stream].
std::optional<ServiceUrl> parse_service_url(std::string_view url);
// Nothing for anything but tcp://HOST[:PORT]; 5555 where there is none.
std::optional<ServiceUrl> parse_tcp_url(std::string_view url);

// Opens a stream: the client's end of what StreamServer does. Frames and commands
// (client_messages.h) go through the connection, and what it receives is of server_messages.h.
Task<Result<std::unique_ptr<Connection>, ConnectError>> open_stream(Executor executor,
                                                                    ServiceUrl url,
                                                                    StreamRequest request);

}  // namespace millrace
