// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

// Detects that most values of a quarter second of a stream were clamped. The client then probably
// sends values of another scale, such as f32 audio that was not divided by 32768. Confined to one
// thread.
class ClampWatch {
 public:
  static constexpr std::string_view message =
      "most values were clamped; f32 audio must be between -1 and 1";

  // `rate` is in frames per second; `values` are per frame.
  ClampWatch(double rate, std::uint32_t values) : quarter_(rate / 4 * values), values_(values) {}

  // Adds frames, and how many of their values were clamped. Returns true at most once per stream.
  bool add(std::uint64_t frames, std::uint64_t clamped) {
    seen_ += frames * values_;
    clamped_ += clamped;
    if (detected_ || static_cast<double>(seen_) < quarter_) return false;
    detected_ = clamped_ > seen_ / 2;
    seen_ = clamped_ = 0;
    return detected_;
  }

 private:
  const double quarter_;
  const std::uint32_t values_;
  bool detected_ = false;
  std::uint64_t seen_ = 0, clamped_ = 0;  // values
};

}  // namespace millrace
