// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "transport/client_gate.h"
#include "transport/door.h"
#include "transport/endless_task.h"
#include "transport/listener.h"
#include "transport/retry_times.h"
#include "transport/session_scope.h"
#include "transport/upgrade.h"

namespace millrace {

// Accepts the clients of one io thread: reads the upgrade, asks the door, answers, and runs the
// session, all in `scope`. A request for a file of the gate's page is answered instead, within the
// same limits. Each client takes one of the gate's sockets from its first moment on. If there is
// none left, or memory is short, it gets a 503 before anything of it is read. Scope, door and gate
// outlive it. Confined to one thread.
class StreamServer {
 public:
  StreamServer(SessionScope& scope, Acceptor acceptor, Door& door, ClientGate& gate);

  // Accepts until stop_accepting(); sessions that run go on.
  void start() { accepting_.start(); }
  void stop_accepting();

  Tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  Task<> accept_all();
  void let_in(Socket socket);
  void refuse(Socket socket, std::string_view peer, Refusal reason, std::string message);

  SessionScope& scope_;
  Acceptor acceptor_;
  Door& door_;
  ClientGate& gate_;
  const PageRules rules_;
  RetryTimes retry_times_;
  EndlessTask accepting_;
};

}  // namespace millrace
