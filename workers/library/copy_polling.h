// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/time.h"

namespace millrace {

// When to check whether a batch's copy to the device has ended, after its message was received: at
// once again for as long as a copy of this size should take, because most copies end by then, and
// then in each period. Confined to one thread.
class CopyPolling {
 public:
  static constexpr unsigned least_at_once = 8;  // checks
  static constexpr Duration longest_at_once = std::chrono::microseconds(200);
  static constexpr Duration period = std::chrono::microseconds(50);

  // `bytes` is the size of the copy, `now` the time of the first check.
  CopyPolling(std::size_t bytes, Time now)
      : at_once_until_(now + std::min(Duration(bytes / bytes_per_ns), longest_at_once)) {}

  // The time of the next check after one at `now`, which failed: `now` means at once.
  Time next(Time now) {
    return ++checks_ <= least_at_once || now < at_once_until_ ? now : now + period;
  }

 private:
  static constexpr std::size_t bytes_per_ns = 20;  // through a slow bus

  const Time at_once_until_;
  unsigned checks_ = 0;
};

}  // namespace millrace
