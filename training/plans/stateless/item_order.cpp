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
      permutation_(shuffle_of(items, shuffle), permuted(items), key) {
  if (items.order == Order::rows && shuffle.on && shuffle.window > 0) add_windows();
}

// A window has as many rows as its streams.
void ItemOrder::add_windows() {
  const RowIndex& index = *items_.index;
  windows_.emplace(index.streams(), shuffle_.window, draw(~key_, 0));
  begins_.push_back(0);
  for (std::uint64_t i = 0; i < windows_->count(); ++i) {
    const WindowOrder::Window window = (*windows_)[i];
    const std::uint64_t stream = window.number * shuffle_.window;
    begins_.push_back(begins_.back() + index.begin(stream + window.size) - index.begin(stream));
  }
}

void ItemOrder::read(std::uint64_t begin, std::uint64_t end, std::vector<Item>& into) {
  assert(end <= items_.size());
  into.clear();
  if (items_.order == Order::whole) {
    for (std::uint64_t i = begin; i < end; ++i)
      into.push_back({items_.places[permutation_[i]], 0, 1});
    return;
  }
  const bool windows = windows_.has_value(), rows = items_.order == Order::rows && !windows;
  for (std::uint64_t i = begin; i < end; ++i)
    into.push_back({0, windows ? row_in_window(i) : rows ? permutation_[i] : i, 0});
  items_.index->find(into);
  if (items_.order == Order::streams)
    for (Item& item : into)
      item.stream = items_.places.empty() ? permutation_[item.stream] : items_.places[item.stream];
}

std::uint64_t ItemOrder::row_in_window(std::uint64_t i) {
  if (!rows_ || i < begins_[window_] || i >= begins_[window_ + 1]) {
    const auto after = std::ranges::upper_bound(begins_, i);
    window_ = static_cast<std::size_t>(after - begins_.begin()) - 1;
    const std::uint64_t number = (*windows_)[window_].number;
    first_row_ = items_.index->begin(number * shuffle_.window);
    rows_.emplace(begins_[window_ + 1] - begins_[window_], draw(key_, number));
  }
  return first_row_ + (*rows_)[i - begins_[window_]];
}

}  // namespace millrace::training
