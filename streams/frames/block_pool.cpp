// SPDX-License-Identifier: Apache-2.0
#include "streams/frames/block_pool.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace millrace {

BlockPool::BlockPool(std::size_t block_bytes, std::size_t max_spare, Gauge& in_use)
    : block_bytes_(block_bytes), max_spare_(max_spare), in_use_(in_use) {}

BlockPool::Block BlockPool::allocate() {
  Block block;
  if (spare_.empty()) {
    block = std::make_unique_for_overwrite<std::byte[]>(block_bytes_);
  } else {
    block = std::move(spare_.back());
    spare_.pop_back();
  }
  in_use_.add(static_cast<std::int64_t>(block_bytes_));
  return block;
}

void BlockPool::give_back(Block block) {
  in_use_.add(-static_cast<std::int64_t>(block_bytes_));
  if (spare_.size() < max_spare_) spare_.push_back(std::move(block));
}

void BlockPool::allow(std::uint64_t more) {
  const auto now = static_cast<std::uint64_t>(in_use_.value());
  // With 0, blocks are scarce even if no further block is allocated.
  allowed_ = more > 0 ? now + std::min(more, std::numeric_limits<std::uint64_t>::max() - now) : 0;
}

}  // namespace millrace
