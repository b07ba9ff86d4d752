// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// Bytes that the other host of a TCP connection has acknowledged since the connection was made; 0
// if `socket` is none.
std::uint64_t acknowledged_bytes(int socket);

}  // namespace millrace
