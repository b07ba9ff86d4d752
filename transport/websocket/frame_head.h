// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace millrace {

// The head of a WebSocket frame (RFC 6455, 5.2), taken as it is: whether it is a good one, Beast
// says.
struct FrameHead {
  std::uint8_t first = 0;          // final, reserved, opcode
  std::size_t size = 0;            // of the head
  std::uint64_t payload = 0;       // bytes behind it
  std::array<std::byte, 4> key{};  // where masked
  bool masked = false;

  // A whole message of a client in one frame: masked, and its length in as few bytes as possible.
  bool is_binary_message() const { return first == 0x82 && is_well_formed(); }
  bool is_text_message() const { return first == 0x81 && is_well_formed(); }
  bool is_control() const { return (first & 0x08) != 0; }
  bool is_final() const { return (first & 0x80) != 0; }

  // Nothing as long as `bytes` do not have it whole.
  static std::optional<FrameHead> read(Bytes bytes);
  // The head of one that is masked with `key`, or not at all.
  static void append(std::string& out, std::uint8_t first, std::uint64_t payload,
                     std::optional<std::array<std::byte, 4>> key = {});

 private:
  bool is_well_formed() const { return masked && size == least(payload) + 4; }
  static std::size_t least(std::uint64_t payload) {
    return payload < 126 ? 2 : payload < 65536 ? 4 : 10;
  }
};

// Takes the mask off, or puts it on.
void mask(MutableBytes bytes, std::array<std::byte, 4> key);

}  // namespace millrace
