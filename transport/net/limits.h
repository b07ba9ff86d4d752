// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/rates/rate.h"

namespace millrace {

// The longest message that the service sends and the client libraries accept, in bytes.
inline constexpr std::size_t max_service_message = std::size_t{16} << 20;

// The longest message of a client of another vendor's protocol, in bytes: such clients may send
// many seconds of audio at once.
inline constexpr std::size_t longest_vendor_message = std::size_t{1} << 20;

// Limits of one client connection (docs/protocol.md). They are always on, but the rates. Sizes are
// in bytes.
struct ConnectionLimits {
  std::size_t message = 64 * 1024;                     // longest message received
  std::size_t text = 17 * 1024;                        // longest text received
  std::size_t max_message_sent = max_service_message;  // a longer result is an error
  // Unsent bytes at which the service stops reading the client, and its stream hands over no
  // further rows. ZeroMQ clients are always read: their stream ends if more than this of messages
  // other than results is unsent.
  std::size_t unsent = 64 * 1024;
  // Unsent bytes of messages without a stream, such as errors about unknown streams. A ZeroMQ peer
  // with more of them is ended.
  std::size_t unsent_replies = 1024 * 1024;

  std::chrono::milliseconds handshake{10'000};  // from the accept to the answered upgrade
  std::chrono::milliseconds ping{10'000};       // silence of the client before a ping
  // Time without a sent message before a ping, whatever the client sends: proxies end a connection
  // over which one direction has had no byte for 60 s.
  std::chrono::milliseconds quiet{25'000};
  std::chrono::milliseconds idle{30'000};  // silence before the end
  // Time without a message before the end of a WebSocket client that may send. Pongs do not count.
  std::chrono::milliseconds message_idle{30'000};
  // Time without a stream, before the first one and between two, before the end of a WebSocket
  // client; and of one whose protocol keeps connections in pools.
  std::chrono::milliseconds waiting{30'000}, pooled{600'000};
  std::chrono::milliseconds assembly{5'000};      // from the first to the last byte of a message
  std::chrono::milliseconds write_stall{10'000};  // output waits, and the peer acknowledges no byte
  std::chrono::milliseconds close{5'000};         // from our close to the peer's
  std::chrono::minutes age{240};                  // longest life of a connection, ± 10 %

  // A WebSocket client that exceeds a rate is not read for now.
  RateRule messages = {};  // from the client
  RateRule controls = {};  // its pings, pongs and closes
};

// The limit in a message to a client: "30 s".
inline std::string seconds_of(std::chrono::milliseconds limit) {
  return std::to_string(limit.count() / 1000) + " s";
}

// The kernel's limits for one connection. Linux doubles the sizes that it is given, for its own
// structures.
struct SocketLimits {
  std::size_t receive_buffer = 0;        // bytes; 0: chosen by the kernel
  std::size_t send_buffer = 128 * 1024;  // bytes
  // The kernel ends the connection if the peer's host acknowledges nothing for this long.
  std::chrono::milliseconds unacknowledged{30'000};
  // After this time without a byte in either direction, the kernel asks whether the peer's host
  // still exists.
  std::chrono::seconds keep_alive{30};

  constexpr std::size_t kernel_bytes() const { return 2 * (receive_buffer + send_buffer); }
};

// Limits of an HTTP request. A request that continues a stream may have two JSON objects of 4 KiB,
// each three times as long when it is percent-encoded.
inline constexpr std::size_t max_header_bytes = 32 * 1024;
inline constexpr std::size_t max_header_fields = 64;

}  // namespace millrace
