// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transport/sessions/client_gate.h"
#include "transport/sessions/session_scope.h"
#include "transport/sessions/zeromq/client_peer.h"
#include "transport/zeromq/router.h"

namespace millrace {

// Bytes of a message in addition to its frames or options, which `limits.message` does not count.
inline constexpr std::size_t zeromq_envelope = 8 * 1024;

// The server of ZeroMQ clients on one io thread: passes messages between the router and its peers
// (client_peer.h). Runs in `scope`, which has the time limits checked. At a drain, the scope cannot
// end until the streams are over and the peers' hosts have acknowledged all messages.
//
// The limits of each peer are those of transport/zeromq/router.h and client_peer.h. Scope,
// admission and gate outlive it. Confined to one thread.
class ZeromqServer final : ZeromqSink, SessionScope::Watched {
 public:
  // Overwrites in `binding`: the limits of a message, from `scope.limits()`, and the limits of the
  // gate. Throws std::runtime_error that names the endpoint.
  ZeromqServer(SessionScope& scope, const ZeromqBinding& binding, StreamAdmission& admission,
               ClientGate& gate);
  ~ZeromqServer();

  // Starts to accept peers.
  void start();

  // No stream is open, and each peer's host has acknowledged all messages, or the peer is cut.
  bool is_idle() const;

  std::uint16_t port() const { return router_.port(); }
  const TransportStats& stats() const { return stats_; }
  const ZeromqStats& socket_stats() const { return socket_stats_; }

 private:
  class Peer;
  using Peers = std::unordered_map<ZeromqPeer, std::unique_ptr<Peer>>;

  bool received(ZeromqPeer id, ZeromqMessage message, Time arrived) override;
  bool proceed(ZeromqPeer id) override;
  void malformed(ZeromqPeer id) override;
  void writable(ZeromqPeer id) override;
  void connection_refused(const Tcp::endpoint& peer, Refusal, std::string_view why) override;
  void lost(ZeromqPeer id) override;

  void check(Time now) override;
  void check_some();
  void continue_check();
  void drain() override;
  void abort() override;

  Task<> run();
  Peer& peer(ZeromqPeer id);
  void wake(ZeromqPeer id);
  void flush_woken();
  template <class Work>
  void guard(Peer& peer, Work work);
  void notify_if_draining();

  SessionScope& scope_;
  TransportStats stats_;
  ZeromqStats socket_stats_;
  client_protocol::Encoder encoder_;
  client_protocol::Decoder decoder_;
  RetryTimes retry_times_;
  const PeerContext context_;
  Wakeup ended_;
  Peers peers_;
  std::vector<ZeromqPeer> woken_, flushing_;
  Time checked_at_{};  // the time of the current round of checks
  std::uint64_t round_ = 0;
  bool checking_ = false;        // a round is in progress
  std::size_t next_bucket_ = 0;  // the next bucket of peers_ to check
  bool draining_ = false;
  bool aborted_ = false;
  ZeromqRouter router_;  // last, to be destroyed first
};

}  // namespace millrace
