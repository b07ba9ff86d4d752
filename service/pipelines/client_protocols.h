// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "service/config/options.h"
#include "transport/sessions/conversation.h"
#include "transport/sessions/stream_admission.h"

namespace millrace {

// The protocols of one listener on one io thread.
using ClientProtocols = std::vector<std::unique_ptr<WebSocketProtocol>>;

// The protocols of [listen] websocket, or of the other listener of `address`. `admission` outlives
// them.
ClientProtocols make_protocols(std::span<const ProtocolOptions> protocols,
                               const std::optional<TcpAddress>& address,
                               StreamAdmission& admission);

}  // namespace millrace
