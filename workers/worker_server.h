// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "transport/local_listener.h"
#include "transport/local_socket.h"
#include "transport/net.h"
#include "transport/socket_waits.h"
#include "workers/hub.h"
#include "workers/protocol.h"

namespace millrace {

// Where the hub of a pipeline lives.
struct HubHome {
  Hub* hub = nullptr;  // null: there is no such pipeline
  net::io_context* home = nullptr;
};

// Whom workers meet at the door.
struct WorkerReception {
  std::function<HubHome(std::string_view pipeline)> find;
  WorkerLog log;  // of those that no hub has; called on the server's thread
  Duration patience = worker_protocol::handshake_limit;  // shorter ones are for tests

  // Where this one belongs, or why it cannot be had.
  Result<HubHome, worker_protocol::Refused> home_of(const worker_protocol::Hello& hello) const;
};

// The door for workers of this machine: accepts connections, reads who they are, and hands each
// to the home thread of its pipeline's hub. What fails of one connection ends that one; where
// connections cannot be accepted it tries again. Confined to one thread; hubs and homes outlive it.
class WorkerServer {
 public:
  // Throws std::runtime_error that names the path.
  WorkerServer(Executor executor, const std::string& path, WorkerReception reception);

  // Accepts as long as its io_context runs.
  Task<> serve();

 private:
  enum class Accepted { one, none, failed };
  Accepted accept();
  Task<> receive(FileDescriptor connection);
  Task<> receive_hello(FileDescriptor connection);
  void dispatch(LocalSocket socket, worker_protocol::Hello hello);
  void refuse(LocalSocket& socket, const worker_protocol::Hello& hello,
              worker_protocol::Refused why);

  Executor executor_;
  LocalListener listener_;
  SocketWaits waits_;
  const WorkerReception reception_;
  bool failing_ = false;  // connections cannot be accepted; it is said once
};

}  // namespace millrace
