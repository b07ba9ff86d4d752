// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/client_peer.h"
#include "transport/session_scope.h"
#include "transport/zeromq_router.h"

namespace millrace {

// The ZeroMQ front door, on one io thread: reads what peers of a router send, brings it to them
// (client_peer.h), and what they are told to the router. Runs in `scope`, which has time limits
// looked after, and whose end it holds up until its streams are over.
//
// Bounded per peer: what libzmq holds each way, and what client_peer.h says. Scope, door and
// sockets outlive it. Confined to one thread.
class ZeromqServer final : ZeromqSink, SessionScope::Watched {
 public:
  // Listens on "tcp://127.0.0.1:5555"; port 0: any free one. Each connection takes one of
  // `sockets`. Throws std::runtime_error that names the endpoint.
  ZeromqServer(SessionScope& scope, const std::string& endpoint, Door& door, Budget& sockets);
  ~ZeromqServer();

  // Peers are heard from here on.
  void start();

  std::uint16_t port() const { return router_.port(); }
  const DoorStats& stats() const { return stats_; }
  const ZeromqStats& socket_stats() const { return socket_stats_; }

 private:
  class Peer;
  using Peers = std::unordered_map<ZeromqPeer, std::unique_ptr<Peer>>;

  void received(ZeromqPeer id, ZeromqMessage message) override;
  void malformed(ZeromqPeer id) override;
  void writable(ZeromqPeer id) override;
  void lost(ZeromqPeer id) override;

  void check(Time now) override;
  void drain() override;
  void abort() override;

  Task<> run();
  Peer& peer(ZeromqPeer id);
  void wake(ZeromqPeer id);
  void flush_woken();
  template <class Work>
  void guard(Peer& peer, Work work);
  void note_end();

  SessionScope& scope_;
  DoorStats stats_;
  ZeromqStats socket_stats_;
  client_protocol::Encoder encoder_;
  client_protocol::Decoder decoder_;
  const PeerPlace place_;
  Wakeup ended_;
  Peers peers_;
  std::vector<ZeromqPeer> woken_, flushing_;
  bool draining_ = false;
  bool aborted_ = false;
  ZeromqRouter router_;  // last: the first that is gone
};

}  // namespace millrace
