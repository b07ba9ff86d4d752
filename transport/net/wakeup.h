// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/intrusive/list.hpp>
#include <optional>
#include <utility>

#include "transport/net/net.h"

namespace millrace {

// The coroutines of an io_context that were woken and have not run yet, in the order of their
// wake-ups. One post() runs up to `at_once` of them, so that many results do not delay other work
// of the thread. Confined to the thread of the io_context.
class WokenCoroutines final : public net::execution_context::service {
 public:
  using key_type = WokenCoroutines;
  static net::execution_context::id id;
  static constexpr std::size_t at_once = 64;
  using Token = net::use_awaitable_t<Executor>;
  using Waiter = net::async_result<Token, void()>::handler_type;

  struct Waiting : boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    std::optional<Waiter> waiter;
  };

  explicit WokenCoroutines(net::execution_context& context);

  // Requires: a coroutine waits in `waiting`, which stays valid until the coroutine runs.
  void add(Waiting& waiting);

 private:
  using List = boost::intrusive::list<Waiting, boost::intrusive::constant_time_size<false>>;
  struct Rest;

  void shutdown() override;
  void post();
  void run();

  net::io_context& context_;
  List waiting_;
  bool posted_ = false;
};

// Wakes one waiting coroutine. Several notifications before it runs count as one. A notification
// without a waiting coroutine is kept for the next wait(). Uses no timer and allocates nothing
// itself. Confined to one thread; outlives its waiting coroutine.
class Wakeup {
 public:
  explicit Wakeup(Executor executor)
      : woken_(net::use_service<WokenCoroutines>(executor.context())) {}
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  // Requires: no other coroutine waits.
  Task<> wait() {
    if (!std::exchange(notified_, false)) {
      co_await net::async_initiate<const WokenCoroutines::Token, void()>(
          [this](WokenCoroutines::Waiter waiter) { waiting_.waiter.emplace(std::move(waiter)); },
          token_);
    }
  }

  // The coroutine runs later, not within this call.
  void notify() {
    if (!waiting_.waiter)
      notified_ = true;
    else if (!waiting_.is_linked())
      woken_.add(waiting_);
  }

 private:
  static constexpr WokenCoroutines::Token token_{};

  WokenCoroutines& woken_;
  WokenCoroutines::Waiting waiting_;
  bool notified_ = false;
};

}  // namespace millrace
