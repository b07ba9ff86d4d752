// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "training/plans/order/permutation.h"
#include "training/plans/order/windowed_permutation.h"
#include "training/plans/stateless/items.h"

namespace millrace::training {

// The shuffled order of the rows. Needs no memory per row. Confined to one thread.
class ItemOrder {
 public:
  // `items` must outlive it.
  ItemOrder(const Items& items, const Shuffle& shuffle, std::uint64_t key);

  // The items [begin, end). Requires: end <= items.size().
  void read(std::uint64_t begin, std::uint64_t end, std::vector<Item>& into);

 private:
  std::uint64_t row_in_window(std::uint64_t i);

  const Items& items_;
  Shuffle shuffle_;
  std::uint64_t key_;
  WindowedPermutation permutation_;
  // The rows of the window that was used last, and their order.
  std::uint64_t begin_ = 0, end_ = 0;
  Permutation window_{1, 0};
};

}  // namespace millrace::training
