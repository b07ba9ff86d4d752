// SPDX-License-Identifier: Apache-2.0
#include "transport/net/wakeup.h"

#include <boost/asio/post.hpp>
#include <new>

namespace millrace {
namespace {

// The coroutine may end, and with it what it waited in.
WokenCoroutines::Waiter take(WokenCoroutines::Waiting& waiting) {
  WokenCoroutines::Waiter waiter = std::move(*waiting.waiter);
  waiting.waiter.reset();
  return waiter;
}

}  // namespace

net::execution_context::id WokenCoroutines::id;

// What has not run when one threw runs the next time.
struct WokenCoroutines::Rest {
  WokenCoroutines& woken;
  List& rest;
  ~Rest() {
    if (rest.empty()) return;
    woken.waiting_.splice(woken.waiting_.begin(), rest);
    if (woken.posted_) return;
    try {
      woken.post();
    } catch (const std::bad_alloc&) {  // who is woken next posts for these too
    }
  }
};

WokenCoroutines::WokenCoroutines(net::execution_context& context)
    : service(context), context_(static_cast<net::io_context&>(context)) {}

void WokenCoroutines::add(Waiting& waiting) {
  if (!posted_) post();
  waiting_.push_back(waiting);
}

void WokenCoroutines::post() {
  net::post(context_, [this] { run(); });
  posted_ = true;
}

// Those that are woken meanwhile come behind what else the thread has to do.
void WokenCoroutines::run() {
  posted_ = false;
  List now;
  now.swap(waiting_);
  const Rest rest{*this, now};
  while (!now.empty()) {
    Waiting& first = now.front();
    now.pop_front();
    take(first)();
  }
}

// Those that are destroyed may wake others.
void WokenCoroutines::shutdown() {
  posted_ = true;
  while (!waiting_.empty()) {
    Waiting& first = waiting_.front();
    waiting_.pop_front();
    take(first);
  }
}

}  // namespace millrace
