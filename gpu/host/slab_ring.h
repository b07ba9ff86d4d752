// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "gpu/host/shared_memory.h"

namespace millrace {

// The slabs of a lane, in one piece of shared memory: slab i is at i * slab_bytes(), on pages that
// it does not share with another slab. A slab is acquired for a batch and released when the worker
// has finished with it.
//
// The slabs of an evicted worker must not be written again. Keep the ring until the worker's
// process has ended. The pages exist as long as any process maps them.
//
// Confined to one thread.
class SlabRing {
 public:
  // The size of a slab for `bytes` bytes: rounded up to whole pages.
  static std::size_t slab_bytes_for(std::size_t bytes);

  // Allocates `slabs` slabs of at least `bytes` bytes each. Throws std::system_error.
  // Requires: both >= 1.
  SlabRing(std::uint32_t slabs, std::size_t bytes);

  std::uint32_t used() const { return used_count_; }
  bool has_free() const { return used() < slabs(); }
  // Acquires the free slab with the lowest number; nullopt if all are in use.
  std::optional<std::uint32_t> acquire();
  // Makes the slab free. Requires: it was acquired.
  void release(std::uint32_t slab);

  MutableBytes slab(std::uint32_t slab) const {
    return memory_.bytes().subspan(slab * slab_bytes_, slab_bytes_);
  }
  std::uint32_t slabs() const { return static_cast<std::uint32_t>(used_.size()); }
  std::size_t slab_bytes() const { return slab_bytes_; }

  // The memory of all slabs, valid as long as the ring.
  MutableBytes memory() const { return memory_.bytes(); }
  // The descriptor of the memory, for the worker's process; -1 after close_descriptor().
  int descriptor() const { return memory_.descriptor(); }
  void close_descriptor() { memory_.close_descriptor(); }

 private:
  std::size_t slab_bytes_;
  SharedMemory memory_;
  std::vector<bool> used_;  // by slab
  std::uint32_t used_count_ = 0;
};

}  // namespace millrace
