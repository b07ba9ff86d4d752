// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/sessions/client_gate.h"
#include "transport/sessions/client_peer.h"
#include "transport/sessions/session_scope.h"
#include "transport/zeromq/router.h"

namespace millrace {

// Bytes of a message around the frames or options in it, so that `limits.message` is what it says.
inline constexpr std::size_t zeromq_envelope = 8 * 1024;

// The server of ZeroMQ clients on one io thread: brings the messages of a router's peers to them
// (client_peer.h), and their messages to the router. Runs in `scope`, which has time limits
// looked after. At a drain it holds up the end of the scope until the streams are over and the
// peers' hosts have acknowledged every message.
//
// Bounded per peer: what transport/zeromq/router.h and client_peer.h say. Scope, admission and
// gate outlive it. Confined to one thread.
class ZeromqServer final : ZeromqSink, SessionScope::Watched {
 public:
  // Of `binding`, it sets the longest message, and what the gate refuses. Throws
  // std::runtime_error that names the endpoint.
  ZeromqServer(SessionScope& scope, const ZeromqBinding& binding, StreamAdmission& admission,
               ClientGate& gate);
  ~ZeromqServer();

  // Peers are heard from here on.
  void start();

  // No stream is left, and no message is on its way to a peer.
  bool is_idle() const;

  std::uint16_t port() const { return router_.port(); }
  const DoorStats& stats() const { return stats_; }
  const ZeromqStats& socket_stats() const { return socket_stats_; }

 private:
  class Peer;
  using Peers = std::unordered_map<ZeromqPeer, std::unique_ptr<Peer>>;

  void received(ZeromqPeer id, ZeromqMessage message) override;
  void malformed(ZeromqPeer id) override;
  void writable(ZeromqPeer id) override;
  void connection_refused(const Tcp::endpoint& peer, Refusal why) override;
  void lost(ZeromqPeer id) override;

  void check(Time now) override;
  void check_some();
  void check_on();
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
  RetryTimes retry_times_;
  const PeerPlace place_;
  Wakeup ended_;
  Peers peers_;
  std::vector<ZeromqPeer> woken_, flushing_;
  Time checked_at_{};  // what time it is in the present round of checks
  std::uint64_t round_ = 0;
  bool checking_ = false;        // a round is under way
  std::size_t next_bucket_ = 0;  // of peers_, to be checked next
  bool draining_ = false;
  bool aborted_ = false;
  ZeromqRouter router_;  // last: the first that is gone
};

}  // namespace millrace
