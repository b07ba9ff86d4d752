// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "schemas/client_command.h"

namespace millrace {

// Input of a stream in the order in which it is sent: frames, or a command.
using QueuedInput = std::variant<std::string, ClientMessage>;

// Bytes of frames in one message: half of the default of `[limits] message`, and small enough for a
// socket to accept in one write.
inline constexpr std::size_t longest_frames = 32 * 1024;

}  // namespace millrace
