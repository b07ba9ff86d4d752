// SPDX-License-Identifier: Apache-2.0
#include "transport/net/wakeup.h"

#include <boost/asio/post.hpp>
#include <new>

namespace millrace {
namespace {

// Moved out before it is called: the coroutine may end and destroy `waiting`.
WokenCoroutines::Waiter take_waiter(WokenCoroutines::Waiting& waiting) {
  WokenCoroutines::Waiter waiter = std::move(*waiting.waiter);
  waiting.waiter.reset();
  return waiter;
}

}  // namespace

net::execution_context::id WokenCoroutines::id;

// Puts the coroutines that have not run back into the list for the next run, also if one throws.
struct WokenCoroutines::Rest {
  WokenCoroutines& woken;
  List& rest;
  ~Rest() {
    if (rest.empty()) return;
    woken.waiting_.splice(woken.waiting_.begin(), rest);
    if (woken.posted_) return;
    try {
      woken.post();
    } catch (const std::bad_alloc&) {  // the next add() posts for these too
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

// Coroutines woken during the run wait for the next post, after other work of the thread.
void WokenCoroutines::run() {
  posted_ = false;
  List now;
  now.swap(waiting_);
  const Rest rest{*this, now};
  for (std::size_t left = at_once; left > 0 && !now.empty(); --left) {
    Waiting& first = now.front();
    now.pop_front();
    take_waiter(first)();
  }
}

// The coroutines destroyed here may wake others, so the list can grow meanwhile.
void WokenCoroutines::shutdown() {
  posted_ = true;
  while (!waiting_.empty()) {
    Waiting& first = waiting_.front();
    waiting_.pop_front();
    take_waiter(first);
  }
}

}  // namespace millrace
