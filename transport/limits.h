// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace millrace {

// The longest message of the service's that our client libraries read, in bytes.
inline constexpr std::size_t longest_told = std::size_t{16} << 20;

// What one client connection may take, in bytes and in time (docs/protocol.md). Always on.
struct ConnectionLimits {
  std::size_t message = 64 * 1024;     // longest message that is read
  std::size_t told = longest_told;     // longest message that is sent; a longer result is an error
  std::size_t full = 64 * 1024;        // unsent bytes at which the client is no longer read
  std::size_t overflow = 1024 * 1024;  // unsent bytes at which it is a slow reader

  std::chrono::milliseconds handshake{10'000};    // accept to upgrade answered
  std::chrono::milliseconds ping{10'000};         // silence before a ping
  std::chrono::milliseconds idle{30'000};         // silence before the end
  std::chrono::milliseconds mute{30'000};         // the same of a WebSocket client that may speak
  std::chrono::milliseconds assembly{5'000};      // first to last byte of a message
  std::chrono::milliseconds write_stall{10'000};  // no byte taken by the peer, or too few
  std::chrono::milliseconds close{5'000};         // our close to the peer's
  std::chrono::minutes age{240};                  // of a connection, give or take a tenth
};

// Of an HTTP request.
inline constexpr std::size_t max_header_bytes = 8 * 1024;
inline constexpr std::size_t max_header_fields = 64;

}  // namespace millrace
