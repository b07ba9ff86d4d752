// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/queue.h"

namespace millrace::pocketsphinx {

// A fixed number of threads that share the jobs of one round at a time. The calling thread is one
// of them.
//
// Confined to one thread.
class ThreadTeam {
 public:
  // `size` counts the calling thread; at least 1.
  explicit ThreadTeam(std::size_t size);
  ~ThreadTeam();

  std::size_t size() const { return threads_.size() + 1; }

  // Calls job(0) … job(jobs - 1), each once, on any of the threads. They start in this order.
  // Returns when all have returned. A job must not throw.
  void run(std::size_t jobs, const std::function<void(std::size_t)>& job);

 private:
  struct Round {
    const std::function<void(std::size_t)>& job;
    const std::size_t jobs;
    std::atomic<std::size_t> next{0};
    std::latch left;
    void work();
  };
  using Inbox = Queue<Round*>;

  std::vector<std::unique_ptr<Inbox>> inboxes_;
  std::vector<std::jthread> threads_;  // last: joined before the inboxes are destroyed
};

}  // namespace millrace::pocketsphinx
