// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "transport/local_listener.h"
#include "transport/local_socket.h"
#include "transport/net.h"
#include "transport/socket_waits.h"
#include "workers/hub.h"

namespace millrace {

// Where the hub of a pipeline lives.
struct HubHome {
  Hub* hub = nullptr;  // null: there is no such pipeline
  net::io_context* home = nullptr;
};

// The door for workers of this machine: accepts connections, reads who they are, and hands each
// to the home thread of its pipeline's hub. Confined to one thread; hubs and homes outlive it.
class WorkerServer {
 public:
  using FindHub = std::function<HubHome(std::string_view pipeline)>;

  // Throws std::runtime_error that names the path.
  WorkerServer(Executor executor, const std::string& path, FindHub find);

  // Accepts as long as its io_context runs.
  Task<> serve();

 private:
  Task<> receive_hello(FileDescriptor connection);
  void dispatch(LocalSocket socket, worker_protocol::Hello hello);

  Executor executor_;
  LocalListener listener_;
  SocketWaits waits_;
  FindHub find_;
};

}  // namespace millrace
