// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "training/plans/order/permutation.h"
#include "training/plans/order/windowed_permutation.h"
#include "training/plans/stateless/items.h"

namespace millrace::training {

// The shuffled order of the rows. Needs no memory per row, and eight bytes per window. Confined to
// one thread.
class ItemOrder {
 public:
  // `items` must outlive it.
  ItemOrder(const Items& items, const Shuffle& shuffle, std::uint64_t key);

  // The items [begin, end). Requires: end <= items.size().
  void read(std::uint64_t begin, std::uint64_t end, std::vector<Item>& into);

 private:
  void add_windows();
  std::uint64_t row_in_window(std::uint64_t i);

  const Items& items_;
  Shuffle shuffle_;
  std::uint64_t key_;
  WindowedPermutation permutation_;
  // Windows of rows: where each window begins in the order, and an end.
  std::optional<WindowOrder> windows_;
  std::vector<std::uint64_t> begins_;
  // The window that was used last: its place in the order, its first row, and its permutation.
  std::size_t window_ = 0;
  std::uint64_t first_row_ = 0;
  std::optional<Permutation> rows_;
};

}  // namespace millrace::training
