// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "transport/websocket/connection.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

// Answers an upgrade that was read already, and speaks WebSocket from there on: `rest` is what came
// behind it. Nothing when that fails. A message over `longest` ends the connection before
// it is read; `socket` is cut when the connection is destroyed.
Task<std::unique_ptr<Connection>> accept_websocket(Socket socket, Upgrade upgrade, std::string rest,
                                                   std::size_t longest);

// Why there is no connection: what the server answered, or that it is not there.
struct ConnectError {
  unsigned status = 0;  // of HTTP; 0: no answer
  std::string message;  // the answer's body, where there is one
  std::optional<std::chrono::seconds> retry_after{};
};

// The client's side of the handshake, on a connected socket.
Task<Result<std::unique_ptr<Connection>, ConnectError>> connect_websocket(Socket socket,
                                                                          std::string host,
                                                                          std::string target);

}  // namespace millrace
