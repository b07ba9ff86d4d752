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

// Converts messages of a service to the events of a stream, which are the same over each transport,
// and adds them to its pipe. Confined to the client's thread.

// A text message over WebSocket, or a binary message, which is a result in bytes. False if it is
// not a message of the protocol. Ignores types of a later version.
[[nodiscard]] bool receive_text(StreamPipe& pipe, std::string_view text);
[[nodiscard]] bool receive_bytes(StreamPipe& pipe, Bytes message);

// A message over ZeroMQ. Ignores Credit, which is not an event.
void receive(StreamPipe& pipe, const client_protocol::ToClient& message);

// The failure of a stream whose upgrade to WebSocket failed: refused, or lost if there was no valid
// answer.
StreamFailure refusal_of(const ConnectError& error);

}  // namespace millrace
