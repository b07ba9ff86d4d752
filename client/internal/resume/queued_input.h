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

// Bytes that a command, or an event, counts at least.
inline constexpr std::size_t min_entry_bytes = 64;

// Bytes that the input counts where input is limited.
inline std::size_t size_of(const QueuedInput& queued) {
  if (const auto* frames = std::get_if<std::string>(&queued)) return frames->size();
  const auto& command = std::get<ClientMessage>(queued);
  const auto* message = std::get_if<client_message::Message>(&command);
  const auto* set = std::get_if<client_message::Set>(&command);
  return min_entry_bytes + (message ? message->data.size() : set ? set->options.size() : 0);
}

}  // namespace millrace
