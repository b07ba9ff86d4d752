// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "transport/connection.h"
#include "transport/session_outbox.h"
#include "transport/session_scope.h"
#include "transport/stream_sink.h"

namespace millrace {

// One client's stream over its open connection: what the client sends goes to `sink`, what lies in
// `outbox` to the client, until the connection is over and the sink knows it. Runs in `scope`,
// which has its time limits looked after. Everything but the sink outlives it.
Task<> run_session(SessionScope& scope, Connection& connection, SessionOutbox& outbox,
                   std::unique_ptr<StreamSink> sink);

}  // namespace millrace
