// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/rates/rate.h"

namespace millrace {

// A rate with its rule, which may change meanwhile. Several threads take from it.
//
// Thread-safe, without a lock. Memory order is relaxed: a call beside set_rule() may count by a
// part of either rule.
class SharedRate {
 public:
  SharedRate() = default;  // no limit

  void set_rule(const RateRule& rule) {
    burst_.store(rule.burst(), std::memory_order_relaxed);
    per_second_.store(rule.per_second(), std::memory_order_relaxed);
  }
  bool limits() const { return per_second_.load(std::memory_order_relaxed) > 0; }

  // As those of Rate.
  [[nodiscard]] bool try_take(Time now, double cost = 1) {
    return !limits() || rate_.try_take(rule(), now, cost);
  }
  void take(Time now, double cost) {
    if (limits()) rate_.take(rule(), now, cost);
  }
  Duration wait(Time now, double cost = 1) const {
    return limits() ? rate_.wait(rule(), now, cost) : Duration();
  }

 private:
  RateRule rule() const {
    const double per_second = per_second_.load(std::memory_order_relaxed);
    const double burst = burst_.load(std::memory_order_relaxed);
    return per_second > 0 && burst > 0 ? RateRule(per_second, burst) : RateRule();
  }

  Rate rate_;
  std::atomic<double> per_second_ = 0;  // 0: no limit
  std::atomic<double> burst_ = 0;
};

}  // namespace millrace
