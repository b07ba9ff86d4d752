// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace millrace {

// Bytes of an Opus packet: 48 frames of at most 1275 bytes, and their lengths (RFC 6716).
inline constexpr std::size_t longest_packet = 2 + 48 * (1275 + 2);

}  // namespace millrace
