// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace millrace::bench {

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
