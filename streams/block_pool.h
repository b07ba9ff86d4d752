// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/stats.h"

namespace millrace {

// Blocks of memory, all of one size, for the frames of the streams of one pipeline on one io
// thread. A block that is given back is the next one taken, while it is still in the cache; of
// those that nobody has, a bounded number is kept. Confined to one thread.
class BlockPool {
 public:
  using Block = std::unique_ptr<std::byte[]>;

  // `in_use` counts the bytes that were taken and not given back; it must outlive the pool.
  BlockPool(std::size_t block_bytes, std::size_t max_spare, Gauge& in_use);

  std::size_t block_bytes() const { return block_bytes_; }

  // Its content is undefined.
  Block take();
  void give_back(Block block);

  // So many bytes more than now may be in use, with 0 none at all; without a word any number.
  // Beyond it blocks are scarce: they are given all the same, but who takes them is to hold as few
  // as it can.
  void allow(std::uint64_t more);
  bool scarce() const { return static_cast<std::uint64_t>(in_use_.value()) > allowed_; }

  // Blocks that are kept for later.
  std::size_t spare() const { return spare_.size(); }

 private:
  const std::size_t block_bytes_;
  const std::size_t max_spare_;
  Gauge& in_use_;
  std::vector<Block> spare_;
  std::uint64_t allowed_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace millrace
