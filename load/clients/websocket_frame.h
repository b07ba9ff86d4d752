// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

#include "base/bytes.h"

namespace millrace::load {

// WebSocket frames (RFC 6455, 5.2) as a client writes and reads them, without the library that the
// service uses: that costs more per message than the service may, and would hide an error of its
// own.

enum class Opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

// The longest header of a client: two bytes, a length of eight, a key of four.
inline constexpr std::size_t longest_header = 14;

// Writes frames that a client may send: each masked with a new random key, as it must be. A key of
// zeros would be free for a service that looks at it. Confined to one thread.
class FrameWriter {
 public:
  FrameWriter();

  // A whole message; returns its length. Requires: `to` has room for it and longest_header.
  std::size_t write(MutableBytes to, Opcode opcode, Bytes payload);

 private:
  std::minstd_rand keys_;
};

struct ServerFrame {
  Opcode opcode{};
  bool final = true;
  Bytes payload;       // in what it was read from
  std::size_t size{};  // with its header
};

// The frame at the front. Nothing while it is incomplete; a size of 0 if it is none that a server
// may send, or its payload is over `longest`.
std::optional<ServerFrame> read_frame(Bytes bytes, std::size_t longest);

}  // namespace millrace::load
