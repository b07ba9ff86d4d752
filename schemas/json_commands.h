// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "schemas/client_command.h"

namespace millrace {

// The text messages from a client to the service (docs/protocol.md), for both ends.

// The longest command, in bytes. A longer text message is refused before it is parsed.
inline constexpr std::size_t longest_command = 1024;

// The command, or what is wrong with it, for the client to read. A key that is there twice is an
// error. The cost is linear in the length of `text`.
[[nodiscard]] Result<ClientMessage, std::string> parse_client_message(std::string_view text);

std::string to_json(const ClientMessage& message);

}  // namespace millrace
