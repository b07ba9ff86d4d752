// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "transport/net/tls/stream_socket.h"
#include "transport/websocket/connection.h"
#include "transport/websocket/message_reader.h"

namespace millrace {

// Opens a WebSocket over a socket whose upgrade was answered. `rest` are the bytes that were
// already read after the upgrade. A message of more than `longest` bytes ends the connection
// before it is read. The socket is closed when the connection is destroyed.
std::unique_ptr<Connection> open_websocket(Role role, StreamSocket socket, std::string rest,
                                           std::size_t longest);

}  // namespace millrace
