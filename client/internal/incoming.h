// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/internal/stream_pipe.h"
#include "schemas/client_messages.h"
#include "schemas/server_messages.h"
#include "transport/websocket/client.h"

namespace millrace {

// Converts messages of a service to the events of a stream, which are the same over each transport,
// and adds them to its pipe. Confined to the client's thread.

// A text message over WebSocket. Ignores types that are not events, and those of a later version.
// Requires: it is complete.
void receive(StreamPipe& pipe, ServerMessage& message);
// False if a result has no answer, or a message no data.
bool is_complete(const ServerMessage& message);

// A message over ZeroMQ, or a binary message over WebSocket. Ignores Credit, which is not an event.
void receive(StreamPipe& pipe, const client_protocol::ToClient& message);

// The failure of a stream that the service refuses over ZeroMQ.
StreamFailure refusal_of(const client_protocol::Error& error);

// The failure of a stream whose upgrade to WebSocket failed: refused, or lost if there was no valid
// answer.
StreamFailure refusal_of(const ConnectError& error);

}  // namespace millrace
