// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

namespace millrace {

// The commands of a client to its stream (docs/protocol.md), between the frames.
namespace client_message {

struct Flush {
  std::optional<std::uint64_t> mark;
};
struct Reset {};
struct Gap {
  std::uint64_t frames = 1;  // of the client
};
struct Keepalive {};
struct End {};

}  // namespace client_message

using ClientMessage =
    std::variant<client_message::Flush, client_message::Reset, client_message::Gap,
                 client_message::Keepalive, client_message::End>;

}  // namespace millrace
