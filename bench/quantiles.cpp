// SPDX-License-Identifier: Apache-2.0
#include "bench/quantiles.h"

#include <array>
#include <cstdio>

namespace millrace::bench {

namespace {

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

void print_heading(std::string_view title) {
  std::printf("%-44.*s %8s %8s %8s %8s %8s %8s\n", static_cast<int>(title.size()), title.data(),
              "min", "p50", "p90", "p99", "p99.9", "max");
}

void print_row(std::string_view name, const load::Histogram& times) {
  std::printf("%-44.*s", static_cast<int>(name.size()), name.data());
  for (const double part : {0.0, 0.5, 0.9, 0.99, 0.999})
    std::printf(" %8.0f", microseconds(times.quantile(part)));
  std::printf(" %8.0f\n", microseconds(times.greatest()));
}

std::string json_of(const load::Histogram& times) {
  const auto quantile = [&](double part) { return microseconds(times.quantile(part)); };
  std::array<char, 160> text{};
  const int size =
      std::snprintf(text.data(), text.size(),
                    R"({"min_us":%.1f,"p50_us":%.1f,"p90_us":%.1f,"p99_us":%.1f,"p999_us":%.1f})",
                    quantile(0), quantile(0.5), quantile(0.9), quantile(0.99), quantile(0.999));
  return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace millrace::bench
