// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/time.h"

namespace millrace::training {

// Decides how many threads fill batches, by the share of its time for which the consumer waits:
// above 5 % in a period of a second, there are twice as many, up to a limit. Threads that do not
// shorten the waits by a tenth are the last ones. The first period is not counted, because each
// stream is opened in it. Pure: `now` is passed in.
class ThreadGrowth {
 public:
  ThreadGrowth(std::uint32_t threads, std::uint32_t most) : threads_(threads), most_(most) {}

  // The number of threads from now on. `waited`: the time waited since the first call.
  std::uint32_t threads(Time now, Duration waited) {
    if (threads_ >= most_) return threads_;
    if (!begun_) return begin(now, waited);
    if (now - begin_ < period) return threads_;
    const double share = std::chrono::duration<double>(waited - waited_) / (now - begin_);
    const bool is_first = !std::exchange(counts_, true);
    begin(now, waited);
    if (is_first) return threads_;
    if (share > 0.9 * share_) most_ = threads_;
    if (share <= 0.05 || threads_ >= most_) return threads_;
    share_ = share;
    counts_ = false;
    return threads_ = std::min(most_, 2 * threads_);
  }

 private:
  static constexpr auto period = std::chrono::seconds(1);

  std::uint32_t begin(Time now, Duration waited) {
    begun_ = true;
    begin_ = now;
    waited_ = waited;
    return threads_;
  }

  std::uint32_t threads_, most_;
  bool begun_ = false;
  bool counts_ = false;  // a period has ended since the number of threads changed
  Time begin_{};         // when the period began
  Duration waited_{};    // before the period
  double share_ = 2;     // with the number of threads before
};

}  // namespace millrace::training
