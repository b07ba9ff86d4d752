// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/bytes.h"
#include "gpu/host/slab_layout.h"

namespace millrace::training {

// The memory in which a BatchFiller writes batches: buffers of a loader, or the slabs of a trainer.
// Buffers are numbered from 0.
//
// Called on the threads of the filler. Only one thread at a time uses a buffer, from give() until
// its batch is taken.
class BatchBuffers {
 public:
  virtual ~BatchBuffers() = default;

  // The memory of a buffer: at least `bytes` long, and aligned to slab_alignment. Throws
  // std::bad_alloc, or std::length_error if the buffer cannot be so long.
  virtual MutableBytes memory(std::uint32_t buffer, std::size_t bytes) = 0;

  // Most bytes of a batch.
  virtual std::size_t most_bytes() const { return std::numeric_limits<std::size_t>::max(); }

  // The batch in the buffer is written. Throws DeviceFailure.
  virtual void written(std::uint32_t, const SlabShape&) {}
  // A written batch is not delivered: the filler may write the buffer again. Does not throw.
  virtual void dropped(std::uint32_t) {}
};

}  // namespace millrace::training
