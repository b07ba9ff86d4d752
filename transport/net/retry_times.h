// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <random>

namespace millrace {

// When a client that is refused, or asked to leave, may come again: at random, so that not all of
// them come in the same second. Confined to one thread.
class RetryTimes {
 public:
  // For an answer to an upgrade: 1 to 5 s, while memory is short 5 to 15 s.
  std::chrono::seconds of_refused(bool memory_short = false) {
    return std::chrono::seconds(memory_short ? between(5, 15) : between(1, 5));
  }
  // For a goaway: 0 to 5 s.
  std::chrono::milliseconds of_leaving() { return std::chrono::milliseconds(between(0, 5000)); }

 private:
  int between(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }

  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace millrace
