// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "transport/net/net.h"

namespace millrace {

// A task that must run until it returns: a loop that accepts, sweeps or measures. If an allocation
// fails in it, its coroutine is destroyed: by the exception, or by Asio, which destroys the waiting
// coroutine. The task is then made and started again. An exception of the task leaves
// io_context::run(), as with spawn().
//
// Confined to the thread of its executor. The io_context may outlive it.
class EndlessTask {
 public:
  using Make = std::function<Task<>()>;

  EndlessTask(Executor executor, Make make);
  ~EndlessTask();
  EndlessTask(const EndlessTask&) = delete;
  EndlessTask& operator=(const EndlessTask&) = delete;

  // Call once. Throws std::bad_alloc.
  void start();

 private:
  class Running;

  void restart() noexcept;

  const Executor executor_;
  const Make make_;
  const std::shared_ptr<EndlessTask*> self_;  // points to null once this object is destroyed
  std::unique_ptr<std::byte[]> reserve_;      // freed before a restart, when memory is short
};

}  // namespace millrace
