// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "training/plans/order/permutation.h"

namespace millrace::training {

// How a sequence is shuffled.
struct Shuffle {
  bool on = true;            // false: the sequence stays as it is
  std::uint64_t window = 0;  // elements that are permuted together; 0: all
};

// The new place of element `i` of `size`: a permutation within each window. Keeps the permutation
// of the last window, so neighbours are cheap. Confined to one thread.
class WindowedPermutation {
 public:
  WindowedPermutation(const Shuffle& shuffle, std::uint64_t size, std::uint64_t key)
      : on_(shuffle.on && size > 0),
        size_(size),
        window_(shuffle.window == 0 ? size : std::min(shuffle.window, size)),
        key_(key),
        permutation_(on_ ? window_ : 1, on_ ? draw(key, 0) : 0) {}

  // Requires: i < size.
  std::uint64_t operator[](std::uint64_t i) {
    if (!on_) return i;
    if (window_ == size_) return permutation_[i];
    if (const std::uint64_t number = i / window_; number != number_) {
      number_ = number;
      const std::uint64_t begin = number * window_;
      permutation_ = Permutation(std::min(window_, size_ - begin), draw(key_, number));
    }
    return number_ * window_ + permutation_[i - number_ * window_];
  }

 private:
  bool on_;
  std::uint64_t size_, window_, key_;
  std::uint64_t number_ = 0;  // number of the window
  Permutation permutation_;
};

}  // namespace millrace::training
