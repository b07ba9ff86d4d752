// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

// Finds out whether most values of a quarter second of a stream were clamped: then the client
// sends another scale than it says, such as f32 audio that was not divided by 32768. Confined to
// one thread.
class ClampWatch {
 public:
  static constexpr std::string_view message =
      "most values were clamped; f32 audio lies between -1 and 1";

  // Of a stream with so many frames per second and values per frame.
  ClampWatch(double rate, std::uint32_t values) : quarter_(rate / 4 * values), values_(values) {}

  // More frames, and how many of their values were clamped. True once in a stream at most.
  bool add(std::uint64_t frames, std::uint64_t clamped) {
    seen_ += frames * values_;
    clamped_ += clamped;
    if (told_ || static_cast<double>(seen_) < quarter_) return false;
    told_ = clamped_ > seen_ / 2;
    seen_ = clamped_ = 0;
    return told_;
  }

 private:
  const double quarter_;
  const std::uint32_t values_;
  std::uint64_t seen_ = 0, clamped_ = 0;  // values
  bool told_ = false;
};

}  // namespace millrace
