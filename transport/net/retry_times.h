// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <random>

namespace millrace {

// Chooses the time after which a refused or drained client may connect again. It is random, so that
// the clients do not all return in the same second. Confined to one thread.
class RetryTimes {
 public:
  // After a refused upgrade or stream: 1 to 5 s, or 5 to 15 s while memory is short.
  std::chrono::seconds after_refusal(bool memory_short = false) {
    return std::chrono::seconds(memory_short ? between(5, 15) : between(1, 5));
  }
  // After a goaway: 0 to 5 s.
  std::chrono::milliseconds after_goaway() { return std::chrono::milliseconds(between(0, 5000)); }

 private:
  int between(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }

  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace millrace
