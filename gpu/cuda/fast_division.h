// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace millrace::cuda {

// Division by a number that all threads share: a multiplication and a shift, where the hardware
// would take twenty instructions. For what is below `bound`, divided by what is from 1 to `bound`.
//
// Immutable after construction.
class FastDivision {
 public:
  using Index = std::uint32_t;
  static constexpr std::uint64_t bound = std::uint64_t{1} << 31;

  // With s the bits of divisor - 1, the multiplier is 2^(31+s) / divisor rounded up. It fits into
  // 32 bits, and is too large by less than 1: the quotient by less than 2^-s <= 1 / divisor, which
  // carries no n < 2^31 over the next whole number.
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

// The same without bound.
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
