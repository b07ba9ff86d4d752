// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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

  // Blocks that are kept for later.
  std::size_t spare() const { return spare_.size(); }

 private:
  const std::size_t block_bytes_;
  const std::size_t max_spare_;
  Gauge& in_use_;
  std::vector<Block> spare_;
};

}  // namespace millrace
