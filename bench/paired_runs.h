// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace millrace::bench {

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

inline std::string json_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values)
    text.append(text.empty() ? "[" : ",").append(std::to_string(value));
  return text + "]";
}

// The results of alternating runs, in the form that bench/compare reads.
inline std::string json_of(const std::vector<double>& ours, const std::vector<double>& control) {
  return "{\"ours\":" + json_of(ours) + ",\"control\":" + json_of(control) + "}";
}

}  // namespace millrace::bench
