// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

#include "chunker/ready_row.h"

namespace millrace {

// The rows of one stream that wait, in order: a ring that grows to the most that ever waited and
// keeps its memory, so that a row in steady state allocates nothing.
//
// Confined to one thread.
class RowFifo {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // Row i behind the front. Requires: i < size().
  const ReadyRow& operator[](std::size_t i) const {
    assert(i < size_);
    return ring_[(front_ + i) & (ring_.size() - 1)];
  }
  const ReadyRow& front() const { return (*this)[0]; }

  void push(const ReadyRow& row) {
    if (size_ == ring_.size()) grow();
    ring_[(front_ + size_++) & (ring_.size() - 1)] = row;
  }

  // Requires: not empty.
  void pop() {
    assert(size_ > 0);
    front_ = (front_ + 1) & (ring_.size() - 1);
    --size_;
  }

  void clear() { front_ = size_ = 0; }

 private:
  void grow() {
    std::vector<ReadyRow> larger;
    larger.reserve(ring_.empty() ? 2 : 2 * ring_.size());  // a power of two
    for (std::size_t i = 0; i < size_; ++i) larger.push_back((*this)[i]);
    larger.resize(larger.capacity());
    ring_ = std::move(larger);
    front_ = 0;
  }

  std::vector<ReadyRow> ring_;
  std::size_t front_ = 0, size_ = 0;
};

}  // namespace millrace
