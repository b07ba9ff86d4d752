// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace millrace {

// A queue in one piece of memory, which grows to the largest number of values and is kept: it does
// not allocate in steady state. Until the first push it has no memory. Confined to one thread.
template <class T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  std::size_t capacity() const { return slots_.size(); }  // values that its memory can hold

  // Index 0 is the oldest value.
  T& operator[](std::size_t i) {
    assert(i < size_);
    return slots_[(head_ + i) & (slots_.size() - 1)];
  }
  const T& operator[](std::size_t i) const { return const_cast<Ring&>(*this)[i]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  // Requires: `value` is not an element of the ring.
  template <class Value = T>
  void push_back(Value&& value) {
    if (size_ == slots_.size()) grow();
    ++size_;
    back() = std::forward<Value>(value);
  }
  T pop_front() {
    T value = std::move(front());
    // A ring that is mostly empty reuses the same slot, which is in the cache.
    head_ = size_ == 1 ? 0 : (head_ + 1) & (slots_.size() - 1);
    --size_;
    return value;
  }
  T pop_back() {
    T value = std::move(back());
    --size_;
    return value;
  }
  void clear() {
    while (!empty()) pop_back();
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 4 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_.swap(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  // size: 0 or a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace millrace
