// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "gpu/host/shared_memory.h"

namespace millrace {

// The slabs of a lane, in one shared memory: slab i lies at i * slab_bytes(), on pages of its own.
// A slab is acquired for a batch and released when the worker has finished with it. When a worker
// is evicted its slabs are never written again: the ring is kept until its process has ended, and
// the pages live on for as long as anybody has them.
//
// Confined to one thread.
class SlabRing {
 public:
  // What a slab of `bytes` takes: whole pages.
  static std::size_t slab_bytes_for(std::size_t bytes);

  // `slabs` of at least `bytes` each. Throws std::system_error. Requires: both >= 1.
  SlabRing(std::uint32_t slabs, std::size_t bytes);

  std::uint32_t used() const { return taken_; }
  bool has_free() const { return used() < slabs(); }
  // The lowest free slab; nothing when all are in use.
  std::optional<std::uint32_t> acquire();
  // Requires: it was acquired.
  void release(std::uint32_t slab);

  MutableBytes slab(std::uint32_t slab) const {
    return memory_.bytes().subspan(slab * slab_bytes_, slab_bytes_);
  }
  std::uint32_t slabs() const { return static_cast<std::uint32_t>(used_.size()); }
  std::size_t slab_bytes() const { return slab_bytes_; }

  // All of it; lives as long as the ring.
  MutableBytes memory() const { return memory_.bytes(); }
  // For the worker, until it is closed; then -1.
  int descriptor() const { return memory_.descriptor(); }
  void close_descriptor() { memory_.close_descriptor(); }

 private:
  std::size_t slab_bytes_;
  SharedMemory memory_;
  std::vector<bool> used_;
  std::uint32_t taken_ = 0;  // of them
};

}  // namespace millrace
