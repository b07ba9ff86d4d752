// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace millrace {

// A queue in one piece of memory, which grows to the most that was ever in it and is kept, so that
// it allocates nothing in steady state; empty from the start it has none. Confined to one thread.
template <class T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  std::size_t capacity() const { return slots_.size(); }  // for which it has memory

  // 0 is the oldest.
  T& operator[](std::size_t i) {
    assert(i < size_);
    return slots_[(head_ + i) & (slots_.size() - 1)];
  }
  const T& operator[](std::size_t i) const { return const_cast<Ring&>(*this)[i]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  // Requires: `value` does not lie in the ring.
  template <class Value = T>
  void push_back(Value&& value) {
    if (size_ == slots_.size()) grow();
    ++size_;
    back() = std::forward<Value>(value);
  }
  T pop_front() {
    T value = std::move(front());
    // One that is mostly empty uses the same slot again, which is in the cache.
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

  std::vector<T> slots_;  // as many as a power of two, or none
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace millrace
