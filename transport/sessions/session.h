// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/sessions/conversation.h"
#include "transport/sessions/session_scope.h"
#include "transport/websocket/connection.h"

namespace millrace {

// Runs one client's conversation over its open connection, until the connection is over and the
// conversation has no stream any more: moves the bytes in both directions, and enforces the bounds
// and the time limits. Runs in `scope`, which has them checked. All arguments outlive it.
Task<> run_session(SessionScope& scope, Connection& connection, Conversation& conversation);

}  // namespace millrace
