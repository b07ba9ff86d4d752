// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "base/time.h"

namespace millrace {

// How much may be taken from a Rate: `burst` at once, and `per_second` on average. The unit is that
// of the costs, such as one open, or a second of signal. The time of a unit is a whole number of
// nanoseconds, rounded up: a rate of a million per second is exact to 0.1 %.
//
// Immutable after construction.
class RateRule {
 public:
  constexpr RateRule() = default;  // no limit
  // Requires: per_second > 0, burst > 0.
  RateRule(double per_second, double burst)
      : per_second_(per_second),
        burst_(burst),
        unit_(std::clamp(std::ceil(1e9 / per_second), 1.0, static_cast<double>(most))),
        tolerance_(time_of(burst)) {}

  bool limits() const { return per_second_ > 0; }
  double per_second() const { return per_second_; }  // 0: no limit
  double burst() const { return burst_; }

  bool operator==(const RateRule&) const = default;

 private:
  friend class Rate;
  static constexpr std::int64_t most = std::int64_t{1} << 60;  // ns; the sum of a few has 64 bits

  std::int64_t time_of(double cost) const {
    return static_cast<std::int64_t>(std::min(cost * unit_ + 0.5, static_cast<double>(most)));
  }

  double per_second_ = 0;
  double burst_ = 0;
  double unit_ = 0;             // ns until a unit that was taken is there again
  std::int64_t tolerance_ = 0;  // ns; `burst` units
};

// The amount that was taken under a RateRule, as the time at which all of it is there again: the
// generic cell rate algorithm (GCRA) in one word. The rule is an argument, so that many rates share
// it, and may change between calls. If `now` of one thread is before that of another, the call
// counts as made at the later time.
//
// Thread-safe, without a lock. Memory order is relaxed: no other data depends on the word.
class Rate {
 public:
  // Returns false, and takes nothing, if less than `cost` is there. Requires: cost >= 0.
  [[nodiscard]] bool try_take(const RateRule& rule, Time now, double cost = 1) {
    if (!rule.limits()) return true;
    const std::int64_t at = to_wire(now);
    const std::int64_t time = rule.time_of(cost);
    std::int64_t full = full_at_.load(std::memory_order_relaxed);
    std::int64_t next;
    do {
      next = std::max(full, at) + time;
      if (next - at > rule.tolerance_) return false;
    } while (!full_at_.compare_exchange_weak(full, next, std::memory_order_relaxed));
    return true;
  }

  // Takes `cost` even if less is there: for a cost that is known only afterwards. Requires: as
  // above.
  void take(const RateRule& rule, Time now, double cost) {
    if (!rule.limits()) return;
    const std::int64_t at = to_wire(now);
    const std::int64_t time = rule.time_of(cost);
    std::int64_t full = full_at_.load(std::memory_order_relaxed);
    while (!full_at_.compare_exchange_weak(
        full, std::min(std::max(full, at) + time, at + 2 * RateRule::most),
        std::memory_order_relaxed)) {
    }
  }

  // The time until `cost` is there; 0 if it is there now. Requires: cost <= burst of the rule.
  Duration wait(const RateRule& rule, Time now, double cost = 1) const {
    if (!rule.limits()) return {};
    const std::int64_t at = to_wire(now);
    const std::int64_t full = std::max(full_at_.load(std::memory_order_relaxed), at);
    return Duration(std::max(std::int64_t{0}, full - at + rule.time_of(cost) - rule.tolerance_));
  }

  // More than the burst was taken, and that much is not there again yet.
  bool is_exceeded(const RateRule& rule, Time now) const { return wait(rule, now, 0) > Duration{}; }
  // Nothing that was taken is missing any more.
  bool is_full(Time now) const { return full_at_.load(std::memory_order_relaxed) <= to_wire(now); }

 private:
  std::atomic<std::int64_t> full_at_ = 0;  // ns, as Time
};

}  // namespace millrace
