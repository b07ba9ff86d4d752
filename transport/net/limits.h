// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace millrace {

// The longest message of the service's that our client libraries read, in bytes.
inline constexpr std::size_t longest_told = std::size_t{16} << 20;

// What one client connection may take, in bytes and in time (docs/protocol.md). Always on.
struct ConnectionLimits {
  std::size_t message = 64 * 1024;  // longest message that is read
  std::size_t told = longest_told;  // longest message that is sent; a longer result is an error
  // Unsent bytes from which on the client is not read, and its stream hands over no row. Over
  // ZeroMQ, where clients are always read, a stream is ended when more bytes than this of messages
  // other than results are unsent.
  std::size_t unsent = 64 * 1024;
  // Unsent bytes of messages that belong to no stream, such as errors about unknown streams. A
  // ZeroMQ peer with more of them is ended.
  std::size_t unsent_replies = 1024 * 1024;

  std::chrono::milliseconds handshake{10'000};    // accept to upgrade answered
  std::chrono::milliseconds ping{10'000};         // silence before a ping
  std::chrono::milliseconds idle{30'000};         // silence before the end
  std::chrono::milliseconds mute{30'000};         // the same of a WebSocket client that may speak
  std::chrono::milliseconds assembly{5'000};      // first to last byte of a message
  std::chrono::milliseconds write_stall{10'000};  // no byte taken by the peer, or too few
  std::chrono::milliseconds close{5'000};         // our close to the peer's
  std::chrono::minutes age{240};                  // of a connection, give or take a tenth
};

// What the kernel keeps of one connection, and for how long. Linux doubles the sizes that it is
// given, for its own structures.
struct SocketLimits {
  std::size_t receive_buffer = 0;                    // bytes; 0: the kernel decides
  std::size_t send_buffer = 128 * 1024;              // bytes
  std::chrono::milliseconds unacknowledged{30'000};  // that the peer's host may leave our bytes

  constexpr std::size_t kernel_bytes() const { return 2 * (receive_buffer + send_buffer); }
};

// Of an HTTP request.
inline constexpr std::size_t max_header_bytes = 8 * 1024;
inline constexpr std::size_t max_header_fields = 64;

}  // namespace millrace
