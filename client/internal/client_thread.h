// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/internal/carrier.h"
#include "client/internal/changes.h"
#include "transport/net/net.h"

namespace millrace {

// What a Client is made of: the thread that has its connections. Thread-safe.
class ClientThread {
 public:
  ClientThread(const std::string& url, const ClientSettings& settings);
  // Every stream that is not over is lost.
  ~ClientThread();

  std::shared_ptr<StreamPipe> open(StreamRequest request);
  Changes& changes() { return changes_; }

 private:
  const ClientSettings settings_;
  Changes changes_;
  std::atomic<std::uint64_t> opened_{0};  // streams so far
  net::io_context context_{1};
  net::executor_work_guard<Executor> work_;
  std::unique_ptr<Carrier> carrier_;
  std::jthread thread_;  // the last: it ends before what it uses
};

}  // namespace millrace
