// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/sessions/client_gate.h"
#include "transport/sessions/conversation.h"
#include "transport/sessions/session_scope.h"
#include "transport/websocket/connection.h"

namespace millrace {

// Runs one client's conversation over its open connection, until the connection has ended and the
// conversation has no stream any more. Passes messages in both directions and enforces the limits
// and timeouts, which `scope` has checked. All arguments outlive the task.
Task<> run_session(SessionScope& scope, ClientGate& gate, Connection& connection,
                   Conversation& conversation);

}  // namespace millrace
