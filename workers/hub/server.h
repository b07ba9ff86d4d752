// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/budget.h"
#include "base/result.h"
#include "schemas/worker_protocol.h"
#include "transport/net/framed_socket.h"
#include "transport/net/local_listener.h"
#include "transport/net/net.h"
#include "transport/net/socket_waits.h"
#include "workers/hub/hub.h"
#include "workers/hub/worker_log.h"
#include "workers/lanes/stats.h"

namespace millrace {

// Where the hub of a pipeline lives.
struct HubHome {
  Hub* hub = nullptr;  // null: there is no such pipeline
  net::io_context* home = nullptr;
};

// What a WorkerServer needs of the service.
struct WorkerReception {
  std::function<HubHome(std::string_view pipeline)> find;
  WorkerLog log;  // of workers that no hub has; called on the server's thread
  Duration patience = worker_protocol::handshake_limit;  // shorter ones are for tests

  // Where this worker belongs, or why it is refused.
  Result<HubHome, worker_protocol::Refused> home_of(const worker_protocol::Hello& hello) const;
};

// TCP connections at a time, those that have not sent Hello included.
inline constexpr std::size_t max_remote_connections = 1024;
// Received bytes that each of them may hold, whatever the others hold.
inline constexpr std::size_t own_unread = std::size_t{256} << 10;

// What the TCP connections of all workers may take together. Outlives the connections, and hence
// the io_contexts that they are on.
struct RemoteBudgets {
  // `unread_bytes`: received bytes of incomplete messages, beyond own_unread of each connection.
  explicit RemoteBudgets(std::uint64_t unread_bytes) : unread(unread_bytes) {}

  Budget connections{max_remote_connections};
  Budget unread;
};

// What the service accepts of a worker.
FramedLimits worker_limits();

// One worker's connection (session.cpp), from its Hello to its end, on the home thread of the hub.
// The hub must outlive the run of its io_context. `place` is given back at the end.
Task<> serve_worker(FramedSocket socket, worker_protocol::Hello hello, Hub& hub, Share place = {});

// A listener for workers, on this machine or over TCP: accepts connections, reads Hello, and
// passes each connection to the home thread of its pipeline's hub. A failure of one connection
// ends that one; if connections cannot be accepted, it tries again. Confined to one thread; hubs
// and homes outlive it.
class WorkerServer {
 public:
  // At a path. Throws std::runtime_error that names it.
  WorkerServer(Executor executor, const std::string& path, WorkerReception reception);
  // Over TCP. Throws std::runtime_error that names the endpoint.
  WorkerServer(Executor executor, const Tcp::endpoint& endpoint, WorkerReception reception,
               RemoteBudgets& budgets);

  // Accepts as long as its io_context runs.
  Task<> serve();

  std::uint16_t port() const;  // 0 at a path
  const WorkerServerStats& stats() const { return stats_; }

 private:
  enum class Accepted { one, none, failed };
  int listening() const { return local_ ? local_->native_handle() : tcp_.get(); }
  Accepted accept();
  Task<> receive(FileDescriptor connection, Share place);
  Task<> receive_hello(FileDescriptor connection, Share place);
  void dispatch(FramedSocket socket, worker_protocol::Hello hello, Share place);
  FramedLimits limits(const Hub& hub, const worker_protocol::Hello& hello) const;
  void refuse(FramedSocket& socket, std::string_view name, const worker_protocol::Refused& why);
  void note_refused(std::string_view name, std::string_view why);
  void refuse_one_more();

  Executor executor_;
  std::optional<LocalListener> local_;
  FileDescriptor tcp_;                // without local_
  RemoteBudgets* budgets_ = nullptr;  // of connections over TCP
  SocketWaits waits_;
  const WorkerReception reception_;
  WorkerServerStats stats_;
  bool failing_ = false;  // connections cannot be accepted, which was logged
  bool full_ = false;     // there are as many as there may be, which was logged
};

}  // namespace millrace
