// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "transport/websocket/random_keys.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

// The texts of the opening handshake of a WebSocket (RFC 6455, 4).

// The value of Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string accept_of(std::string_view key);

// The complete header of a client's request. `key` comes from random_key(); `fields` are complete
// lines. `listed`: the subprotocols; empty: none.
std::string upgrade_request(std::string_view host, std::string_view target, std::string_view key,
                            std::string_view fields = {}, std::string_view listed = subprotocol);
std::string random_key(RandomKeys& random);

// The server's answer that opens the WebSocket.
std::string answer_to(const Upgrade& upgrade);

}  // namespace millrace
