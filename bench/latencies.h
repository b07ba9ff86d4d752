// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace millrace::bench {

// Measured times of one kind. Confined to one thread.
class Latencies {
 public:
  void add(Duration latency) { all_.push_back(latency); }
  std::size_t count() const { return all_.size(); }

  static void print_heading(std::string_view title);
  // A line of microseconds: minimum, quantiles, maximum.
  void print(std::string_view name);

 private:
  double quantile(double part) const;

  std::vector<Duration> all_;
};

}  // namespace millrace::bench
