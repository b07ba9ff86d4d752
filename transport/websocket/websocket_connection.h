// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "transport/websocket/connection.h"
#include "transport/websocket/message_reader.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

// Speaks WebSocket over a socket whose upgrade was answered: `rest` are the bytes that were read
// behind it. A message over `longest` ends the connection before it is read. `socket` is cut when
// the connection is destroyed.
std::unique_ptr<Connection> open_websocket(Role role, Socket socket, std::string rest,
                                           std::size_t longest);

// Answers an upgrade that was read already, and opens the server's end. Null if that fails.
Task<std::unique_ptr<Connection>> accept_websocket(Socket socket, Upgrade upgrade, std::string rest,
                                                   std::size_t longest);

}  // namespace millrace
