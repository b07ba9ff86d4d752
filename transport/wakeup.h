// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "transport/net.h"

namespace millrace {

// Wakes one waiting coroutine. Many notifications before it runs are one; one that comes while
// nobody waits is kept for the next wait. Needs no timer and allocates nothing of its own.
// Confined to one thread; outlives its waiter.
class Wakeup {
 public:
  explicit Wakeup(Executor executor) : executor_(std::move(executor)) {}
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  // Requires: nobody else waits.
  Task<> wait() {
    if (!std::exchange(notified_, false)) {
      co_await net::async_initiate<const Token, void()>(
          [this](Waiter waiter) { waiter_.emplace(std::move(waiter)); }, token_);
    }
  }

  // The waiter runs later, not within this call.
  void notify() {
    if (!waiter_) {
      notified_ = true;
      return;
    }
    net::post(executor_, std::move(*waiter_));
    waiter_.reset();
  }

 private:
  using Token = net::use_awaitable_t<Executor>;
  using Waiter = net::async_result<Token, void()>::handler_type;
  static constexpr Token token_{};

  Executor executor_;
  std::optional<Waiter> waiter_;
  bool notified_ = false;
};

}  // namespace millrace
