// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace millrace {

// A queue in one piece of memory, which grows to the largest number of values and is kept: it does
// not allocate in steady state. Until the first push it has no memory. It has room for 2^31 values.
// Confined to one thread.
template <class T>
class Ring {
 public:
  Ring() = default;
  Ring(Ring&& other) noexcept { swap(other); }
  Ring& operator=(Ring&& other) noexcept {
    Ring(std::move(other)).swap(*this);
    return *this;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  std::size_t capacity() const { return capacity_; }  // values that its memory can hold

  // Index 0 is the oldest value.
  T& operator[](std::size_t i) {
    assert(i < size_);
    return slots_[(head_ + i) & (capacity_ - 1)];
  }
  const T& operator[](std::size_t i) const { return const_cast<Ring&>(*this)[i]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  // Requires: `value` is not an element of the ring.
  template <class Value = T>
  void push_back(Value&& value) {
    if (size_ == capacity_) grow();
    ++size_;
    back() = std::forward<Value>(value);
  }
  T pop_front() {
    T value = std::move(front());
    // A ring that is mostly empty reuses the same slot, which is in the cache.
    head_ = size_ == 1 ? 0 : (head_ + 1) & (capacity_ - 1);
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
  void swap(Ring& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
    std::swap(head_, other.head_);
    std::swap(size_, other.size_);
  }
  void grow() {
    Ring larger;
    larger.capacity_ = capacity_ == 0 ? 4 : 2 * capacity_;
    larger.slots_ = std::make_unique<T[]>(larger.capacity_);
    larger.size_ = size_;
    for (std::uint32_t i = 0; i < size_; ++i) larger.slots_[i] = std::move((*this)[i]);
    swap(larger);
  }

  // Small, because a stream has many rings.
  std::unique_ptr<T[]> slots_;
  std::uint32_t capacity_ = 0;  // 0 or a power of two
  std::uint32_t head_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace millrace
