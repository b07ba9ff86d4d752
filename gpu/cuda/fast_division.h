// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace millrace::cuda {

// Division by a fixed number, as a multiplication and a shift instead of some twenty instructions.
// Requires: n < bound, 1 <= divisor <= bound.
//
// Immutable after construction.
class FastDivision {
 public:
  using Index = std::uint32_t;
  static constexpr std::uint64_t bound = std::uint64_t{1} << 31;

  // With s = bit_width(divisor - 1), the multiplier is 2^(31+s) / divisor, rounded up; it fits into
  // 32 bits. Rounding makes it too large by less than 1, and the quotient of n < 2^31 by less than
  // 2^-s <= 1 / divisor. That is too little to reach the next whole number.
  constexpr explicit FastDivision(std::uint64_t divisor)
      : divisor_(static_cast<Index>(divisor)),
        shift_(31 + static_cast<Index>(std::bit_width(divisor - 1))),
        multiplier_(static_cast<Index>(((std::uint64_t{1} << shift_) + divisor - 1) / divisor)) {}

  constexpr Index divisor() const { return divisor_; }
  constexpr Index operator()(Index n) const {
    return static_cast<Index>(std::uint64_t{n} * multiplier_ >> shift_);
  }

 private:
  Index divisor_, shift_, multiplier_;
};

// The same interface for any n, with the division of the hardware. Immutable after construction.
class WideDivision {
 public:
  using Index = std::uint64_t;

  constexpr explicit WideDivision(std::uint64_t divisor) : divisor_(divisor) {}

  constexpr Index divisor() const { return divisor_; }
  constexpr Index operator()(Index n) const { return n / divisor_; }

 private:
  Index divisor_;
};

}  // namespace millrace::cuda
