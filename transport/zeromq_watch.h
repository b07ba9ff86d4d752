// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <functional>
#include <utility>
#include <zmq.hpp>

#include "transport/net.h"

namespace millrace {

// Waits on an Asio thread for the news of a socket of libzmq, whose descriptor tells of news once:
// who is told takes all of it, or comes again by himself. Destroyed before the socket, when the
// executor does not run any more. Confined to one thread.
class ZeromqWatch {
 public:
  explicit ZeromqWatch(Executor executor) : descriptor_(std::move(executor)) {}
  ~ZeromqWatch() {
    if (descriptor_.is_open()) descriptor_.release();  // libzmq closes it
  }
  ZeromqWatch(const ZeromqWatch&) = delete;
  ZeromqWatch& operator=(const ZeromqWatch&) = delete;

  // Calls `take` now, and at all news. What it throws leaves the run of the io_context, and it is
  // called again at the next.
  void start(zmq::socket_t& socket, std::function<void()> take) {
    take_ = std::move(take);
    descriptor_.assign(socket.get(zmq::sockopt::fd));
    wait();
    take_();
  }

 private:
  using Descriptor = net::posix::basic_stream_descriptor<Executor>;

  void wait() {
    descriptor_.async_wait(Descriptor::wait_read, [this](boost::system::error_code cancelled) {
      if (cancelled) return;
      try {
        take_();
      } catch (...) {
        wait();
        throw;
      }
      wait();
    });
  }

  Descriptor descriptor_;
  std::function<void()> take_;
};

}  // namespace millrace
