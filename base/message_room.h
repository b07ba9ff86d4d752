// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "base/answer.h"

namespace millrace {

// The room of a stream: the bytes of messages to its client that its worker may have sent and that
// are not written to the client yet. With the first row of a stream, a worker gets the room that
// earlier workers left. Room comes back in steps, so that a fast client does not cause a notice for
// each message; the longest message still fits while a step is not given back.
inline constexpr std::uint32_t stream_room = 64 << 10;
inline constexpr std::uint32_t room_step = 16 << 10;

// A message uses its data and this many bytes, which also limits the number of messages.
inline constexpr std::uint32_t message_overhead = 64;
inline constexpr std::uint32_t most_messages = stream_room / message_overhead;
inline constexpr std::uint32_t longest_message = stream_room - room_step - message_overhead;

// The room that a message uses. Requires: it has at most longest_message bytes.
inline std::uint32_t room_of(const Answer& message) {
  return static_cast<std::uint32_t>(message.data.size()) + message_overhead;
}

// Collects room that is free again until it is a step.
class FreedRoom {
 public:
  // Returns the bytes to give back now; 0: none.
  std::uint32_t add(std::uint32_t bytes) {
    bytes_ += bytes;
    return bytes_ < room_step ? 0 : std::exchange(bytes_, 0);
  }

 private:
  std::uint32_t bytes_ = 0;
};

}  // namespace millrace
