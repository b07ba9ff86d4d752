// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace millrace {

// The commands that a client sends between frames (docs/protocol.md).
namespace client_message {

// Ends the segment.
struct Flush {
  std::optional<std::uint64_t> mark;  // at most 2^53 - 1; returned when the segment is done
};
// Ends the run: the model starts with a fresh state.
struct Reset {};
// Reports lost frames.
struct Gap {
  std::uint64_t frames = 1;  // frames of the client, 1 to 2^53 - 1
};
// Does nothing: shows that the client is alive.
struct Keepalive {};
// The most levels of nesting in the data of the two messages below. Answers have 32: a worker may
// put the data into an answer.
inline constexpr std::size_t deepest_data = 24;
// A message for the worker, which receives it with the stream's next row.
struct Message {
  std::string data;  // a JSON value
};
// Changes the stream's options: a message that the worker receives in the same way.
struct Set {
  std::string options;  // a JSON object: the options that change
};
// Ends the input.
struct End {};
// From a client that resumes: it has all messages before number `n`.
struct Ack {
  std::uint64_t n = 0;  // at most 2^53 - 1
};

}  // namespace client_message

using ClientMessage =
    std::variant<client_message::Flush, client_message::Reset, client_message::Gap,
                 client_message::Keepalive, client_message::End, client_message::Message,
                 client_message::Set, client_message::Ack>;

}  // namespace millrace
