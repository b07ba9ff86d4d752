// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace millrace {

// The text messages from a client to the service (docs/protocol.md), for both ends.
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

// The longest command, in bytes. A longer text message is refused before it is parsed.
inline constexpr std::size_t longest_command = 1024;

// The command, or what is wrong with it, for the client to read. A key that is there twice is an
// error. The cost is linear in the length of `text`.
[[nodiscard]] Result<ClientMessage, std::string> parse_client_message(std::string_view text);

std::string to_json(const ClientMessage& message);

}  // namespace millrace
