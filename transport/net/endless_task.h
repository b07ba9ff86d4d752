// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "transport/net/net.h"

namespace millrace {

// A task that must go on until it returns: a loop that accepts, sweeps or measures. If an
// allocation fails in it, its coroutine is gone, either by an exception or because Asio destroys
// what waited for the operation. It is then made and started again. What it throws leaves the run
// of its io_context, as with spawn().
//
// Confined to the thread of its executor. The io_context may outlive it.
class EndlessTask {
 public:
  using Make = std::function<Task<>()>;

  EndlessTask(Executor executor, Make make);
  ~EndlessTask();
  EndlessTask(const EndlessTask&) = delete;
  EndlessTask& operator=(const EndlessTask&) = delete;

  // Once. Throws std::bad_alloc.
  void start();

 private:
  class Running;

  void restart() noexcept;

  const Executor executor_;
  const Make make_;
  const std::shared_ptr<EndlessTask*> self_;  // null in it: this object is gone
  std::unique_ptr<std::byte[]> reserve_;      // freed for the restart, when memory is short
};

}  // namespace millrace
