// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "transport/websocket/random_keys.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

// The opening handshake of a WebSocket (RFC 6455, 4) as text.

// What Sec-WebSocket-Accept must be for a Sec-WebSocket-Key.
std::string accept_of(std::string_view key);

// The request of a client, to the end of its header. `key` is random_key()'s.
std::string upgrade_request(std::string_view host, std::string_view target, std::string_view key);
std::string random_key(RandomKeys& random);

// The answer that opens the WebSocket.
std::string answer_to(const Upgrade& upgrade);

}  // namespace millrace
