// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/internal/changes.h"
#include "client/internal/transport.h"
#include "transport/net/net.h"

namespace millrace {

// The implementation of Client: the thread that owns its connections. Thread-safe.
class ClientThread {
 public:
  // Throws as Client does.
  ClientThread(const std::string& url, const ClientSettings& settings, const ServiceAccess& access);
  // Fails every stream that is not over as lost.
  ~ClientThread();

  // Begins to open a stream; does not wait.
  std::shared_ptr<StreamPipe> open(StreamRequest request);
  Changes& changes() { return changes_; }

 private:
  const ClientSettings settings_;
  Changes changes_;
  std::atomic<std::uint64_t> opened_{0};  // number of streams so far
  net::io_context context_{1};
  net::executor_work_guard<Executor> work_;
  std::unique_ptr<Transport> transport_;
  std::jthread thread_;  // the last member: it ends before the members that it uses
};

}  // namespace millrace
