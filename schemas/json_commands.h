// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "schemas/client_command.h"

namespace millrace {

// The text messages from a client to the service (docs/protocol.md), for both ends.

// The command, or an error message for the client. A text of more than `longest` bytes is refused
// before it is parsed. A repeated key is an error. The cost is linear in the length of `text`.
[[nodiscard]] Result<ClientMessage, std::string> parse_client_message(std::string_view text,
                                                                      std::size_t longest);

std::string to_json(const ClientMessage& message);

}  // namespace millrace
