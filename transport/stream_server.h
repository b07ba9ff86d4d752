// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget.h"
#include "transport/door.h"
#include "transport/listener.h"
#include "transport/session_scope.h"

namespace millrace {

// Lets clients in, on one io thread: accepts, reads the upgrade, asks the door, answers, and runs
// the session, all in `scope`. Each client takes one of `sockets`, from its first moment on; who
// finds none is hung up on. Scope, door and sockets outlive it. Confined to one thread.
class StreamServer {
 public:
  StreamServer(SessionScope& scope, Acceptor acceptor, Door& door, Budget& sockets);

  // Accepts until stop_accepting(); sessions that run go on.
  void start();
  void stop_accepting();

  Tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  Task<> accept_all();
  void let_in(Socket socket);

  SessionScope& scope_;
  Acceptor acceptor_;
  Door& door_;
  Budget& sockets_;
};

}  // namespace millrace
