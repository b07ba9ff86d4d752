// SPDX-License-Identifier: Apache-2.0
#include "bench/latencies.h"

#include <algorithm>
#include <cstdio>

namespace millrace::bench {

void Latencies::print_heading(std::string_view title) {
  std::printf("%-44.*s %8s %8s %8s %8s %8s %8s\n", static_cast<int>(title.size()), title.data(),
              "min", "p50", "p90", "p99", "p99.9", "max");
}

void Latencies::print(std::string_view name) {
  std::ranges::sort(all_);
  std::printf("%-44.*s", static_cast<int>(name.size()), name.data());
  for (const double part : {0.0, 0.5, 0.9, 0.99, 0.999, 1.0}) std::printf(" %8.0f", quantile(part));
  std::printf("\n");
}

double Latencies::quantile(double part) const {
  if (all_.empty()) return 0;
  const auto place = static_cast<std::size_t>(part * static_cast<double>(all_.size()));
  const Duration latency = all_[std::min(place, all_.size() - 1)];
  return std::chrono::duration<double, std::micro>(latency).count();
}

}  // namespace millrace::bench
