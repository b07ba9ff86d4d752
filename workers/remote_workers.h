// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "schemas/worker_codec.h"
#include "transport/net.h"
#include "workers/hub.h"
#include "workers/mailbox.h"
#include "workers/remote_line.h"

namespace millrace {

// A pipeline's workers on other machines, on its home thread: makes a WorkerConnection of each
// line, as worker_session does of a local socket.
//
// put() is thread-safe, everything else happens on the home thread. Outlives the run of its
// io_context, as the hub does and `out`, which takes what goes to the workers.
class RemoteWorkers {
 public:
  RemoteWorkers(Hub& hub, net::io_context& home, Mailbox<ToRemote>& out);
  ~RemoteWorkers();

  void put(FromRemote message) noexcept { arrivals_.put(std::move(message)); }

 private:
  class Connection;

  void take(FromRemote arrival);
  void meet(RemoteLine& line, const worker_protocol::Hello& hello);
  void receive(const FromRemote& arrival);
  void receive(Connection& connection, Bytes message);
  Connection* find(RemoteLine* line, std::uint64_t number);
  void lose(RemoteLine* line, WorkerFailure why, Blame blame = Blame::worker);
  void forget(RemoteLine* line);

  Hub& hub_;
  net::io_context& home_;
  Mailbox<ToRemote>& out_;
  Mailbox<FromRemote> arrivals_;
  worker_protocol::Decoder decoder_;
  std::unordered_map<RemoteLine*, std::unique_ptr<Connection>> connections_;
  std::uint64_t last_ = 0;  // number of a connection
};

}  // namespace millrace
