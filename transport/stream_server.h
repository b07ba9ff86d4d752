// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/door.h"
#include "transport/listener.h"
#include "transport/session_scope.h"

namespace millrace {

// Lets clients in, on one io thread: accepts, reads the upgrade, asks the door, answers, and runs
// the session, all in `scope`, which outlives it as `door` does. Confined to one thread.
class StreamServer {
 public:
  StreamServer(SessionScope& scope, Acceptor acceptor, Door& door);

  // Accepts until stop_accepting(); sessions that run go on.
  void start();
  void stop_accepting();

  Tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  Task<> accept_all();

  SessionScope& scope_;
  Acceptor acceptor_;
  Door& door_;
};

}  // namespace millrace
