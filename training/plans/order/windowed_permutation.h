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

// The order of the windows of a sequence: the whole windows are permuted, and the last one, if it
// is shorter, is anywhere among them. Immutable.
class WindowOrder {
 public:
  // Requires: window >= 1.
  WindowOrder(std::uint64_t size, std::uint64_t window, std::uint64_t key)
      : size_(size),
        window_(window),
        whole_(size / window),
        short_at_(draw(key, 0) % (whole_ + 1)),
        order_(std::max<std::uint64_t>(whole_, 1), draw(key, 1)) {}

  struct Window {
    std::uint64_t number = 0;  // in the sequence
    std::uint64_t begin = 0;   // place of its first element in the order
    std::uint64_t size = 0;
  };

  std::uint64_t count() const { return whole_ + (rest() > 0 ? 1 : 0); }
  // Window `i` of the order. Requires: i < count().
  Window operator[](std::uint64_t i) const {
    if (rest() > 0 && i == short_at_) return {whole_, i * window_, rest()};
    const bool behind = rest() > 0 && i > short_at_;
    const std::uint64_t place = behind ? i - 1 : i;
    return {order_[place], place * window_ + (behind ? rest() : 0), window_};
  }
  // The window in which place `i` is. Requires: i < size.
  Window at(std::uint64_t i) const {
    const std::uint64_t before = short_at_ * window_;
    if (rest() == 0 || i < before) return (*this)[i / window_];
    if (i < before + rest()) return (*this)[short_at_];
    return (*this)[(i - rest()) / window_ + 1];
  }
  // The same window by its number. Requires: number < count().
  Window numbered(std::uint64_t number) const {
    if (number == whole_) return (*this)[short_at_];
    const std::uint64_t place = order_.place_of(number);
    return (*this)[rest() > 0 && place >= short_at_ ? place + 1 : place];
  }

 private:
  std::uint64_t rest() const { return size_ % window_; }

  std::uint64_t size_, window_, whole_, short_at_;
  Permutation order_;
};

// The element at each place of a shuffled sequence: the windows are permuted, and the elements of
// each window. Keeps the permutation of the last window, so neighbours are cheap. Confined to one
// thread.
class WindowedPermutation {
 public:
  WindowedPermutation(const Shuffle& shuffle, std::uint64_t size, std::uint64_t key)
      : on_(shuffle.on && size > 0),
        windows_(shuffle.window > 0 && shuffle.window < size),
        window_(windows_ ? shuffle.window : std::max<std::uint64_t>(size, 1)),
        key_(key),
        order_(size, window_, draw(~key, 0)),
        current_{.number = 0, .begin = 0, .size = 0},
        permutation_(on_ && !windows_ ? size : 1, draw(key, 0)) {}

  // Requires: i < size.
  std::uint64_t operator[](std::uint64_t i) {
    if (!on_) return i;
    if (!windows_) return permutation_[i];
    if (i - current_.begin >= current_.size) use(order_.at(i));
    return current_.number * window_ + permutation_[i - current_.begin];
  }
  // The place of an element. Requires: element < size.
  std::uint64_t place_of(std::uint64_t element) {
    if (!on_) return element;
    if (!windows_) return permutation_.place_of(element);
    use(order_.numbered(element / window_));
    return current_.begin + permutation_.place_of(element % window_);
  }

 private:
  void use(const WindowOrder::Window& window) {
    current_ = window;
    permutation_ = Permutation(window.size, draw(key_, window.number));
  }

  bool on_, windows_;
  std::uint64_t window_, key_;
  WindowOrder order_;
  WindowOrder::Window current_;  // its order is permutation_
  Permutation permutation_;
};

}  // namespace millrace::training
