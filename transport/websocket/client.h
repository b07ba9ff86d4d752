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

// The address of a service: "ws://127.0.0.1:8080", "tcp://127.0.0.1:5555".
struct ServiceUrl {
  std::string host;
  std::string port = "80";

  std::string host_field() const;  // the value of the HTTP field Host
};

// Parses ws://HOST[:PORT], optionally followed by / or /v1/stream; the default port is 80. Nullopt
// for anything else.
std::optional<ServiceUrl> parse_service_url(std::string_view url);
// Parses tcp://HOST[:PORT]; the default port is 5555. Nullopt for anything else.
std::optional<ServiceUrl> parse_tcp_url(std::string_view url);

// Why a connection could not be opened.
struct ConnectError {
  unsigned status = 0;  // HTTP status; 0 without a valid answer
  std::string message;  // the body of the answer, or a description of the error
  std::optional<std::chrono::seconds> retry_after{};
};

// Connects to StreamServer and opens a stream. Send frames and commands (client_messages.h) over
// the connection; it receives the messages of server_messages.h.
Task<Result<std::unique_ptr<Connection>, ConnectError>> open_stream(Executor executor,
                                                                    ServiceUrl url,
                                                                    StreamRequest request);

}  // namespace millrace
