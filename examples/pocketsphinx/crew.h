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

// A fixed number of threads that share out the jobs of one round at a time.
// Confined to one thread, which works along.
class Crew {
 public:
  // `size` counts the calling thread; at least 1.
  explicit Crew(std::size_t size);
  ~Crew();

  std::size_t size() const { return threads_.size() + 1; }

  // Calls job(0) … job(jobs - 1), each once, on any of the threads, begun in this order; returns
  // when all have returned. A job must not throw.
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
  std::vector<std::jthread> threads_;  // last: joined before the inboxes go
};

}  // namespace millrace::pocketsphinx
