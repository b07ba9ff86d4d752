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
#include "workers/hub/worker_host.h"
#include "workers/hub/worker_log.h"
#include "workers/lanes/stats.h"

namespace millrace {

// The host of a pipeline's workers and the io_context on which it runs.
struct PipelineHost {
  WorkerHost* host = nullptr;  // null if there is no such pipeline
  net::io_context* home = nullptr;
};

// Settings of a WorkerServer.
struct WorkerServerSettings {
  std::function<PipelineHost(std::string_view pipeline)> find;  // called on the server's thread
  WorkerLog log;  // for workers that no host has accepted; called on the server's thread
  Duration hello_timeout = worker_protocol::handshake_limit;  // until Hello; tests shorten it

  // The host for a worker of this version, or the reason why it is refused.
  Result<PipelineHost, worker_protocol::Refused> host_for(std::uint32_t version,
                                                          const std::string& pipeline) const;
};

// The limit on TCP connections of workers, including those that have not sent Hello.
inline constexpr std::size_t max_remote_connections = 1024;
// Bytes of an incomplete message that each of them may always hold, in addition to the shared
// RemoteBudgets::unread.
inline constexpr std::size_t reserved_unread_bytes = std::size_t{256} << 10;

// The limits on the TCP connections of all workers together. Must outlive the connections, and so
// the io_contexts on which they run.
struct RemoteBudgets {
  // `unread_bytes`: bytes of incomplete messages, beyond reserved_unread_bytes of each connection.
  explicit RemoteBudgets(std::uint64_t unread_bytes) : unread(unread_bytes) {}

  Budget connections{max_remote_connections};
  Budget unread;
};

// The limits on messages between the service and a worker.
FramedLimits worker_limits();

// Serves one worker's connection (session.cpp) from its Hello to its end, on the home thread of the
// host. The host must outlive the run of its io_context. `connection_share` is the connection's
// part of RemoteBudgets::connections, held until the end.
Task<> serve_worker(FramedSocket socket, worker_protocol::Hello hello, WorkerHost& host,
                    Share connection_share = {});

// A listener for workers, on this machine or over TCP: accepts connections, reads Hello, and passes
// each connection to the home thread of its pipeline's host. It answers Describe itself. A failure
// in one connection ends only that one. If accepting fails, it is tried again every 100 ms. The
// hosts and their io_contexts must outlive it. Confined to one thread.
class WorkerServer {
 public:
  // Listens on a Unix socket. Throws std::runtime_error that names the path.
  WorkerServer(Executor executor, const std::string& path, WorkerServerSettings settings);
  // Listens on TCP. Throws std::runtime_error that names the endpoint.
  WorkerServer(Executor executor, const Tcp::endpoint& endpoint, WorkerServerSettings settings,
               RemoteBudgets& budgets);

  // Accepts connections as long as its io_context runs.
  Task<> serve();

  std::uint16_t port() const;  // 0 on a Unix socket
  const WorkerServerStats& stats() const { return stats_; }

 private:
  enum class Accepted { one, none, failed };
  int listening() const { return local_ ? local_->native_handle() : tcp_.get(); }
  Accepted accept();
  Task<> receive(FileDescriptor connection, Share connection_share);
  Task<> receive_hello(FileDescriptor connection, Share connection_share);
  void dispatch(FramedSocket socket, worker_protocol::Hello hello, Share connection_share);
  void describe(FramedSocket socket, const worker_protocol::Describe& asked);
  FramedLimits limits(const WorkerHost& host, const worker_protocol::Hello& hello) const;
  void refuse(FramedSocket& socket, std::string_view name, const worker_protocol::Refused& why);
  void record_refusal(std::string_view name, std::string_view why);
  void refuse_over_limit();

  Executor executor_;
  std::optional<LocalListener> local_;
  FileDescriptor tcp_;                // empty if local_ has a value
  RemoteBudgets* budgets_ = nullptr;  // null if local_ has a value
  SocketWaits waits_;
  const WorkerServerSettings settings_;
  WorkerServerStats stats_;
  bool failing_ = false;  // accepting fails; it is logged once
  bool full_ = false;     // the limit on connections is reached; it is logged once
};

}  // namespace millrace
