// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "client/client_event.h"
#include "client/internal/stream_pipe.h"
#include "schemas/client_messages.h"
#include "transport/websocket/client.h"

namespace millrace {

// What a service said to a stream, as its user hears it: the same over each door. Gives it to the
// pipe. Confined to the client's thread.

// A message over WebSocket: text, or a result with bytes. False for what is none of the protocol;
// types of a later version are passed over.
[[nodiscard]] bool hear_text(StreamPipe& pipe, std::string_view text);
[[nodiscard]] bool hear_bytes(StreamPipe& pipe, Bytes message);

// One over ZeroMQ. Credit is not for the user.
void hear(StreamPipe& pipe, const client_protocol::ToClient& message);

// Why an upgrade to WebSocket failed: refused or lost.
StreamFailure refusal_of(const ConnectError& error);

}  // namespace millrace
