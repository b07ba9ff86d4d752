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

// Threads that make and free slabs: allocating, zeroing and pinning memory takes milliseconds, and
// a driver may take seconds. There is one thread for slabs on the host and one for each device, so
// a device that hangs delays only its own workers.
//
// Thread-safe. Must be destroyed before the hubs that post to it, and before the io_contexts of
// their home threads.
class SlabThreads {
 public:
  // `devices`: the number of devices that the process uses. Throws std::system_error if a thread
  // cannot be started.
  explicit SlabThreads(std::size_t devices);
  // Waits until every posted job has run, also while a driver hangs.
  ~SlabThreads();

  // Runs `job` on the thread of a device, given by its index in Devices::usable(), or on the host's
  // thread if that is nullopt. Jobs of one thread run in the order of their posts. A job must not
  // throw. Throws std::bad_alloc after it has destroyed `job`.
  template <class Job>
  void post(std::optional<std::size_t> device, Job job) {
    net::post(threads_[device ? *device + 1 : 0], std::move(job));
  }

 private:
  std::deque<net::thread_pool> threads_;  // the host's thread, then one per device
};

}  // namespace millrace
