// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/item_order.h"

#include <algorithm>
#include <cassert>

namespace millrace::training {
namespace {

using Order = Items::Order;

// The elements that one permutation permutes.
std::uint64_t permuted(const Items& items) {
  return items.order == Order::streams ? items.streams : items.size();
}

// Windows count streams, so rows have windows of their own.
Shuffle shuffle_of(const Items& items, const Shuffle& shuffle) {
  const bool of_rows = items.order == Order::rows && shuffle.window > 0;
  return {.on = shuffle.on && !of_rows, .window = shuffle.window};
}

}  // namespace

ItemOrder::ItemOrder(const Items& items, const Shuffle& shuffle, std::uint64_t key)
    : items_(items),
      shuffle_(shuffle),
      key_(key),
      permutation_(shuffle_of(items, shuffle), permuted(items), key) {}

void ItemOrder::read(std::uint64_t begin, std::uint64_t end, std::vector<Item>& into) {
  assert(end <= items_.size());
  into.clear();
  if (items_.order == Order::whole) {
    for (std::uint64_t i = begin; i < end; ++i)
      into.push_back({items_.places[permutation_[i]], 0, 1});
    return;
  }
  const bool windows = items_.order == Order::rows && shuffle_.on && shuffle_.window > 0;
  const bool rows = items_.order == Order::rows && !windows;
  for (std::uint64_t i = begin; i < end; ++i)
    into.push_back({0, windows ? row_in_window(i) : rows ? permutation_[i] : i, 0});
  items_.index->find(into);
  if (items_.order == Order::streams)
    for (Item& item : into) item.stream = permutation_[item.stream];
}

std::uint64_t ItemOrder::row_in_window(std::uint64_t i) {
  const RowIndex& index = *items_.index;
  if (i < begin_ || i >= end_) {
    const std::uint64_t number = index.find(i).stream / shuffle_.window;
    const std::uint64_t first = number * shuffle_.window;
    begin_ = index.begin(first);
    end_ = index.begin(std::min(first + shuffle_.window, index.streams()));
    window_ = Permutation(end_ - begin_, draw(key_, number));
  }
  return begin_ + window_[i - begin_];
}

}  // namespace millrace::training
