// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The head of a ZMTP frame (RFC 37): a byte with these flags, and the size of the frame's content
// in one byte, or in eight with `is_long`.
namespace millrace::zmtp {

inline constexpr std::uint8_t more = 1, is_long = 2, is_command = 4;
inline constexpr std::size_t short_head = 2, long_head = 9;  // bytes

}  // namespace millrace::zmtp
