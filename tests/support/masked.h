// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "transport/websocket/frame_head.h"

namespace millrace::test {

// A masked WebSocket frame of a client. `first` is its first byte.
inline std::string masked(unsigned first, std::string payload) {
  constexpr std::array key{std::byte{0x37}, std::byte{0xfa}, std::byte{0x21}, std::byte{0x3d}};
  std::string frame;
  FrameHead::append(frame, static_cast<std::uint8_t>(first), payload.size(), key);
  mask(std::as_writable_bytes(std::span(payload)), key);
  return frame + payload;
}

}  // namespace millrace::test
