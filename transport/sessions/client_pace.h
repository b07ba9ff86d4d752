// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/rates/rate.h"
#include "base/time.h"
#include "transport/net/limits.h"

namespace millrace {

// How fast a client sends messages and control frames. A client that is faster than its limits is
// not read for now: its connection fills up, and other clients are not delayed. The limits outlive
// it. Confined to one thread.
class ClientPace {
 public:
  explicit ClientPace(const ConnectionLimits& limits) : limits_(limits) {}

  void add_message(Time now) {
    messages_.take(limits_.messages, now, 1);
    exceeded_ |= messages_.is_exceeded(limits_.messages, now);
  }
  // `all`: the control frames since the connection was opened.
  void add_controls(std::uint64_t all, Time now) {
    controls_.take(limits_.controls, now, static_cast<double>(all - counted_));
    counted_ = all;
    exceeded_ |= controls_.is_exceeded(limits_.controls, now);
  }

  bool is_exceeded() const { return exceeded_; }
  // Time has passed. Returns true if it was exceeded, and is not any more.
  bool recovers(Time now) {
    if (!exceeded_) return false;
    exceeded_ = messages_.is_exceeded(limits_.messages, now) ||
                controls_.is_exceeded(limits_.controls, now);
    return !exceeded_;
  }

 private:
  const ConnectionLimits& limits_;
  Rate messages_;
  Rate controls_;
  std::uint64_t counted_ = 0;  // control frames
  bool exceeded_ = false;
};

}  // namespace millrace
