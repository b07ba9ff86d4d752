// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <string_view>
#include <utility>

#include "transport/net/net.h"
#include "transport/net/tls/stream_socket.h"
#include "transport/net/turns.h"

namespace millrace {

// Operations that wait for a socket as often as they must. They have no time limit: the caller
// closes the socket to end them. Socket, bytes and turn outlive the tasks.

// Reads at least one byte, unless there is an error.
Task<std::pair<boost::system::error_code, std::size_t>> read_some(StreamSocket& socket,
                                                                  net::mutable_buffer into);
// Writes all bytes.
Task<boost::system::error_code> write_all(StreamSocket& socket, std::string_view bytes);
// A server's handshake of TLS, each step in a turn: it costs as much as many messages. Returns at
// once without TLS.
Task<boost::system::error_code> shake_hands(StreamSocket& socket, Turns::Turn& turn);

}  // namespace millrace
