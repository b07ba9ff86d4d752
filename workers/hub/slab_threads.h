// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "transport/net/net.h"

namespace millrace {

// Threads that make slabs and free them: allocating, zeroing and pinning memory takes milliseconds,
// and a driver may take seconds. There is one thread for slabs on the host and one for each device,
// so that a device that hangs delays only the workers that compute on it.
//
// Thread-safe. It is destroyed before the hubs that post to it, and before the contexts of their
// home threads.
class SlabThreads {
 public:
  // `devices`: how many the process uses. Throws std::system_error if a thread cannot be started.
  explicit SlabThreads(std::size_t devices);
  // Runs every job that was posted. Waits for a driver that hangs.
  ~SlabThreads();

  // Runs `job` on the thread of a device, given by its place among Devices::usable(), or on that of
  // the host. Jobs of one thread run in the order in which they were posted. A job must not throw.
  // Throws std::bad_alloc, after it has destroyed `job`.
  template <class Job>
  void post(std::optional<std::size_t> device, Job job) {
    net::post(threads_[device ? *device + 1 : 0], std::move(job));
  }

 private:
  std::deque<net::thread_pool> threads_;  // the host's first
};

}  // namespace millrace
