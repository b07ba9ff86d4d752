// SPDX-License-Identifier: Apache-2.0
#include "transport/net/turns.h"

#include <boost/asio/post.hpp>
#include <cassert>

namespace millrace {

net::execution_context::id Turns::id;

void Turns::Turn::end_early(std::function<void()> go_on) {
  end();
  assert(!waits());
  length_ = further;
  go_on_ = std::move(go_on);
  turns_.waiting_.push_back(*this);
  turns_.post();
}

Task<> Turns::Turn::next() {
  end_early([this] {
    // Without a waiter, the coroutine could not begin to wait: an allocation has failed.
    if (auto waiter = std::exchange(waiter_, std::nullopt)) (*waiter)();
  });
  constexpr WokenCoroutines::Token token;
  co_await net::async_initiate<const WokenCoroutines::Token, void()>(
      [this](WokenCoroutines::Waiter waiter) { waiter_.emplace(std::move(waiter)); }, token);
}

// A coroutine that is destroyed here may own its turn.
void Turns::shutdown() {
  while (!waiting_.empty()) {
    Turn& next = waiting_.front();
    waiting_.pop_front();
    const auto waiter = std::exchange(next.waiter_, std::nullopt);
  }
}

// The first post is queued behind the next look at the sockets, the second one behind the handlers
// of those that are readable then. If one throws std::bad_alloc, the next end_early() posts again.
void Turns::post() {
  if (posted_) return;
  net::post(context_, [this] {
    posted_ = false;
    net::post(context_, [this] { run_one(); });
    posted_ = true;
  });
  posted_ = true;
}

void Turns::run_one() {
  posted_ = false;
  if (waiting_.empty()) return;
  Turn& next = waiting_.front();
  if (&next != &waiting_.back()) post();
  waiting_.pop_front();
  const auto go_on = std::exchange(next.go_on_, nullptr);  // the call may destroy `next`
  go_on();
}

}  // namespace millrace
