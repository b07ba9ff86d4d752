// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include "transport/net/net.h"

namespace millrace {

// Lets coroutines wait for a descriptor that another object owns, reads and writes. One coroutine
// may wait for input while another waits for output. Must be destroyed before the descriptor is
// closed; waits in progress then end. Confined to one thread.
class SocketWaits {
 public:
  SocketWaits(Executor executor, int descriptor) : descriptor_(executor, descriptor) {}
  ~SocketWaits() { descriptor_.release(); }
  SocketWaits(const SocketWaits&) = delete;
  SocketWaits& operator=(const SocketWaits&) = delete;

  // False if the wait was cancelled.
  Task<bool> readable() { return wait(net::posix::descriptor_base::wait_read); }
  Task<bool> writable() { return wait(net::posix::descriptor_base::wait_write); }
  void cancel() { descriptor_.cancel(); }

 private:
  Task<bool> wait(net::posix::descriptor_base::wait_type what) {
    const auto [error] = co_await descriptor_.async_wait(what, no_throw);
    co_return !error;
  }

  net::posix::basic_stream_descriptor<Executor> descriptor_;
};

}  // namespace millrace
