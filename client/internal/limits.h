// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace millrace {

// Bytes of frames in one message: half of what a service reads unless it was told otherwise, and
// what a socket takes at once.
inline constexpr std::size_t longest_frames = 32 * 1024;

}  // namespace millrace
