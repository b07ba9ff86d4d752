// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace millrace::training {

// A sequence of items divided into batches: batches of equal size, or any batches. Immutable.
class BatchRanges {
 public:
  // Batches of `each` items; the last may have fewer. Requires: each >= 1.
  BatchRanges(std::uint64_t items, std::uint64_t each) : items_(items), each_(each) {}
  // Batches that begin at these items, ascending from 0.
  BatchRanges(std::uint64_t items, std::vector<std::uint64_t> begins)
      : items_(items), each_(0), begins_(std::move(begins)) {}

  std::uint64_t size() const { return each_ == 0 ? begins_.size() : (items_ + each_ - 1) / each_; }
  // The items of a batch: [first, second).
  std::pair<std::uint64_t, std::uint64_t> operator[](std::uint64_t batch) const {
    if (each_ > 0) return {batch * each_, std::min((batch + 1) * each_, items_)};
    return {begins_[batch], batch + 1 < begins_.size() ? begins_[batch + 1] : items_};
  }

 private:
  std::uint64_t items_, each_;
  std::vector<std::uint64_t> begins_;
};

}  // namespace millrace::training
