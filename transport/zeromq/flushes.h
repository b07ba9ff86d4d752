// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/post.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <utility>

#include "base/ring.h"
#include "transport/net/net.h"
#include "transport/zeromq/router.h"

namespace millrace {

// A queue of the peers of a router with unwritten output. Writes to some of them in each turn of
// the thread, so that all messages for a peer in one turn need one system call. Destroyed after its
// executor has stopped running. Confined to one thread.
class ZeromqFlushes {
 public:
  // `write` is called once for each add(). Its exception leaves io_context::run() after the other
  // writes of the turn.
  ZeromqFlushes(Executor executor, std::function<void(ZeromqPeer)> write)
      : executor_(executor), write_(std::move(write)) {}

  // Enqueues a peer. If this throws std::bad_alloc, `write` may or may not be called for it.
  void add(ZeromqPeer peer) {
    waiting_.push_back(peer);
    post();
  }

 private:
  static constexpr std::size_t at_once_ = 64;

  void post() {
    if (posted_) return;
    net::post(executor_, [this] { write_some(); });
    posted_ = true;
  }

  void write_some() {
    posted_ = false;
    std::exception_ptr failure;
    for (std::size_t left = at_once_; left > 0 && !waiting_.empty(); --left) {
      try {
        write_(waiting_.pop_front());
      } catch (...) {
        failure = std::current_exception();
      }
    }
    if (!waiting_.empty()) post();
    if (failure) std::rethrow_exception(failure);
  }

  const Executor executor_;
  const std::function<void(ZeromqPeer)> write_;
  Ring<ZeromqPeer> waiting_;
  bool posted_ = false;
};

}  // namespace millrace
