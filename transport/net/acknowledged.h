// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// Bytes that the peer's host has acknowledged since the TCP connection was made; 0 if `socket` is
// not a TCP socket.
std::uint64_t acknowledged_bytes(int socket);

}  // namespace millrace
