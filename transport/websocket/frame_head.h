// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace millrace {

// RFC 6455, 5.2.
enum class Opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

// Codes of a close frame (RFC 6455, 7.4; `restart` was registered later).
namespace close_codes {
inline constexpr std::uint16_t normal = 1000, going_away = 1001, protocol_error = 1002,
                               bad_text = 1007, too_big = 1009, restart = 1012;
inline constexpr std::uint16_t none = 1005;  // the peer gave none; never sent
}  // namespace close_codes

// The first byte of a frame that is a whole message or a control frame.
constexpr std::uint8_t first_byte(Opcode opcode) {
  return static_cast<std::uint8_t>(0x80 | static_cast<unsigned>(opcode));
}

using MaskingKey = std::array<std::byte, 4>;

// The head of a WebSocket frame (RFC 6455, 5.2) as it was read; it may be invalid.
struct FrameHead {
  std::uint8_t first = 0;     // final bit, reserved bits, opcode
  std::size_t size = 0;       // bytes of the head
  std::uint64_t payload = 0;  // bytes after the head
  MaskingKey key{};           // if masked
  bool masked = false;

  Opcode opcode() const { return Opcode(first & 0x0f); }
  bool is_control() const { return (first & 0x08) != 0; }
  bool is_final() const { return (first & 0x80) != 0; }
  bool has_reserved_bits() const { return (first & 0x70) != 0; }
  // True if the length is encoded in its shortest form and has at most 63 bits.
  bool has_good_length() const {
    return size == shortest(payload) + (masked ? key.size() : 0) && payload >> 63 == 0;
  }

  // Reads the head at the front of `bytes`; nullopt if it is incomplete.
  static std::optional<FrameHead> read(Bytes bytes);

  // Appends the head of a frame that is masked with `key`, or unmasked if `key` is nullopt.
  static void append(std::string& out, std::uint8_t first, std::uint64_t payload,
                     std::optional<MaskingKey> key = {});

 private:
  static std::size_t shortest(std::uint64_t payload) {
    return payload < 126 ? 2 : payload < 65536 ? 4 : 10;
  }
};

// Appends a frame that is a whole message or a control frame.
void append_frame(std::string& out, Opcode opcode, std::string_view payload,
                  std::optional<MaskingKey> key = {});

// Applies the mask to `bytes`, or removes it: the operation is its own inverse.
void mask(MutableBytes bytes, MaskingKey key);

}  // namespace millrace
