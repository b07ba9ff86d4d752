// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/intrusive/list.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "base/time.h"
#include "transport/net/net.h"
#include "transport/net/wakeup.h"

namespace millrace {

// Divides the time of an io thread among the connections that have input. A connection processes
// its input in turns: at least one message, and further ones until its turn is over.
//
// The turn of a connection that has become readable is short. If more of its input is left, it
// waits in a queue for further turns. One of these, of about a millisecond, comes between two looks
// at the sockets. So a connection whose input is cheap waits for about one of them, however many
// connections have input that is expensive.
//
// The upgrade of a new connection, its first input and its end by the peer are further turns too.
// So if many clients connect at once, or are lost at once, the others are served between any two of
// them.
//
// A service of the io_context, for all its connections. Confined to the thread of the io_context.
class Turns final : public net::execution_context::service {
 public:
  using key_type = Turns;
  static net::execution_context::id id;
  static constexpr Duration first = std::chrono::microseconds(200);
  static constexpr Duration further = std::chrono::milliseconds(1);

  class Turn;

  explicit Turns(net::execution_context& context)
      : service(context), context_(static_cast<net::io_context&>(context)) {}

 private:
  using Hook =
      boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  void shutdown() override;
  void post();
  void run_one();

  net::io_context& context_;
  boost::intrusive::list<Turn, boost::intrusive::base_hook<Hook>,
                         boost::intrusive::constant_time_size<false>>
      waiting_;
  bool posted_ = false;
};

// The turns of one connection. Has no clock: the caller passes the time in. If it is destroyed
// while it waits, its turn never begins.
class Turns::Turn : public Hook {
 public:
  explicit Turn(Executor executor) : turns_(net::use_service<Turns>(executor.context())) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Begins a turn, unless one has begun.
  void begin(Time now) {
    if (!end_) end_ = now + std::exchange(length_, first);
  }
  bool is_over(Time now) const { return end_ && now >= *end_; }
  // Ends the turn: all input was processed.
  void end() { end_.reset(); }
  // Ends the turn although input is left. `go_on` is called when the next one may begin, and must
  // begin it before other work of the thread. Requires: !waits().
  void end_early(std::function<void()> go_on);
  // The same for a coroutine: returns when the next turn may begin.
  Task<> next();
  // True after end_early() until the next turn may begin.
  bool waits() const { return is_linked(); }

 private:
  friend Turns;

  Turns& turns_;
  std::optional<Time> end_;
  Duration length_ = first;  // the next turn's
  std::function<void()> go_on_;
  std::optional<WokenCoroutines::Waiter> waiter_;  // the coroutine in next()
};

}  // namespace millrace
