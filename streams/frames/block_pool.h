// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/stats.h"

namespace millrace {

// Blocks of memory of one size, for the frames of the streams of one pipeline on one io thread. The
// block given back last is allocated next, while it is still in the cache. A bounded number of
// unused blocks is kept. Confined to one thread.
class BlockPool {
 public:
  using Block = std::unique_ptr<std::byte[]>;

  // `in_use` counts the bytes that were allocated and not given back; it must outlive the pool.
  BlockPool(std::size_t block_bytes, std::size_t max_spare, Gauge& in_use);

  std::size_t block_bytes() const { return block_bytes_; }

  // Returns a block with undefined content.
  Block allocate();
  void give_back(Block block);

  // Sets the soft limit to the bytes now in use plus `more`; with 0, blocks are scarce at once.
  // Unlimited until the first call. Above the limit allocate() still succeeds, but scarce() is
  // true: streams should then hold as few blocks as they can.
  void allow(std::uint64_t more);
  bool scarce() const { return static_cast<std::uint64_t>(in_use_.value()) > allowed_; }

  // The number of unused blocks that are kept.
  std::size_t spare() const { return spare_.size(); }

 private:
  const std::size_t block_bytes_;
  const std::size_t max_spare_;
  Gauge& in_use_;
  std::vector<Block> spare_;
  std::uint64_t allowed_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace millrace
