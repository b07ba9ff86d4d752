// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/net/endless_task.h"
#include "transport/net/listener.h"
#include "transport/sessions/client_gate.h"
#include "transport/sessions/client_origin.h"
#include "transport/sessions/conversation.h"
#include "transport/sessions/session_scope.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

// Accepts the WebSocket clients of one listener on one io thread: reads the upgrade, lets the
// protocol with the request's path answer it, and runs the session, all in `scope`. Also answers
// requests for a file of the gate's page and for its list of pipelines, within the same limits. A
// client without an accepted token receives a 401. If the gate has TLS, clients must speak it.
//
// Each accepted client takes one of the gate's sockets, and one of its address. If one is missing,
// or memory is short, the client receives a 503 or 429 before its request is read; with TLS, its
// connection is closed before the handshake. Behind a proxy, the address may be known only from the
// request. Scope, protocols and gate outlive it. Confined to one thread.
class StreamServer {
 public:
  // Requires: at least one protocol; their paths differ. `credential`: that all clients have, which
  // then need no token.
  StreamServer(SessionScope& scope, Acceptor acceptor, std::vector<WebSocketProtocol*> protocols,
               ClientGate& gate, std::optional<Credential> credential = {});

  // The servers of this listener on all io threads, by their index. A request that continues a
  // stream of another thread moves there with its connection. Call it before start().
  void set_siblings(std::vector<StreamServer*> siblings) { siblings_ = std::move(siblings); }

  // Accepts clients until stop_accepting(); running sessions then continue.
  void start() { accepting_.start(); }
  void stop_accepting();

  Tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  struct Moved;

  Task<> accept_all();
  Task<> serve(Socket accepted, ClientOrigin origin, Share share);
  void take(Moved moved);  // thread-safe
  void handle_connection(Socket socket);
  std::optional<RequestError> refusal(ClientOrigin& origin, const Share& share);
  void refuse(Socket accepted, std::string_view peer, const RequestError& error);

  SessionScope& scope_;
  Acceptor acceptor_;
  const std::vector<WebSocketProtocol*> protocols_;
  ClientGate& gate_;
  const std::optional<Credential> credential_;
  const PageRules rules_;
  std::vector<StreamServer*> siblings_;
  EndlessTask accepting_;
};

}  // namespace millrace
