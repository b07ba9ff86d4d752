// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/budget.h"
#include "base/ring.h"
#include "base/time.h"
#include "schemas/worker_codec.h"
#include "transport/net.h"
#include "transport/stats.h"
#include "transport/zeromq_router.h"
#include "workers/mailbox.h"
#include "workers/remote_line.h"
#include "workers/remote_workers.h"
#include "workers/worker_server.h"

namespace millrace {

// The door for workers of other machines: ZeroMQ over TCP. Reads who they are, and then carries
// their messages to the home thread of their pipeline's hub and back, through bounded mailboxes.
// Nothing else of a lane happens here. Whoever sends what no worker does is cut, alone, and so is
// one for which there is no memory, or no room (remote_line.h): its lane is told that it is lost.
//
// Constructed anywhere; from start() on confined to the thread that runs `io`, which it outlives,
// as hubs and homes outlive it.
class RemoteServer final : private ZeromqSink {
 public:
  // `endpoint` is "tcp://ADDRESS:PORT"; `max_unread` is the weight of what may wait for the home
  // threads of all workers together. Throws std::runtime_error that names the endpoint.
  RemoteServer(net::io_context& io, const std::string& endpoint, WorkerReception reception,
               std::uint64_t max_unread);
  ~RemoteServer() override;

  void start();
  std::uint16_t port() const { return router_.port(); }
  const ZeromqStats& stats() const { return stats_; }
  const Budget& unread() const { return unread_; }
  // Applies to messages that are received after the call. Thread-safe.
  void set_max_unread(std::uint64_t weight) { unread_.set_limit(weight); }

 private:
  struct Worker;
  // One that was told the end, and when it is cut if it is still there.
  struct Leaving {
    ZeromqPeer peer{};
    Time until;
  };

  void received(ZeromqPeer peer, ZeromqMessage message) override;
  void malformed(ZeromqPeer peer) override;
  void writable(ZeromqPeer peer) override;
  void lost(ZeromqPeer peer) override;

  void greet(ZeromqPeer peer, Bytes message);
  void dispatch(ZeromqPeer peer, worker_protocol::Hello hello);
  void refuse(ZeromqPeer peer, std::string_view name, const worker_protocol::Refused& why);
  void mute(Worker& worker, FromRemote::What why);
  RemoteWorkers& workers_of(const HubHome& home);

  template <class Act>
  void act_or_cut(ZeromqPeer peer, std::string_view what, Act act);
  void take(ToRemote arrival);
  void carry(Worker& worker, ToRemote arrival);
  void flush(Worker& worker);
  void leave(ZeromqPeer peer);
  void wait_for_leaving();

  const WorkerReception reception_;
  Budget connections_{max_remote_lines};
  Budget unread_;
  ZeromqStats stats_;
  Mailbox<ToRemote> from_homes_;
  std::unordered_map<Hub*, std::unique_ptr<RemoteWorkers>> homes_;
  std::unordered_map<ZeromqPeer, std::unique_ptr<Worker>> workers_;
  Ring<Leaving> leaving_;  // in the order of their times
  Timer timer_;
  worker_protocol::Decoder decoder_;
  worker_protocol::Encoder encoder_;
  ZeromqRouter router_;
};

}  // namespace millrace
