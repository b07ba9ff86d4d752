// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace millrace::training {

// Classes of lengths, shortest first. The lengths of a class differ by at most 10 %.
class LengthClasses {
 public:
  // Classes for lengths of 1 … longest.
  explicit LengthClasses(std::uint64_t longest) {
    for (std::uint64_t begin = 1; begin <= longest; begin += begin / 10 + 1)
      begins_.push_back(begin);
  }

  std::size_t size() const { return begins_.size(); }
  // The number of the class. Requires: 1 <= length <= longest.
  std::uint16_t operator[](std::uint64_t length) const {
    const auto after = std::ranges::upper_bound(begins_, length);
    return static_cast<std::uint16_t>(after - begins_.begin() - 1);
  }

 private:
  std::vector<std::uint64_t> begins_;
};

}  // namespace millrace::training
