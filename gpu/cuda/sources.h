// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/device_handles.h"
#include "gpu/cuda/reader.h"

namespace millrace::cuda {

// Slabs that were copied to the device, and their events, which stay their owner's. Slab i is there
// when copied[i] has passed; finished[i] is recorded when it is read no more.
struct CopiedSlabs {
  std::byte* memory = nullptr;
  std::size_t slab_bytes = 0;
  std::vector<cudaEvent_t> copied, finished;
};

// Those of this process; their owner outlives the source.
std::unique_ptr<SlabSource> source_of(CopiedSlabs slabs);

// Those of another. Throws DeviceFailure.
std::unique_ptr<SlabSource> open_source(std::size_t slab_bytes, const DeviceHandles& handles);

// Slabs of the host, copied when they arrive. `pinned`, if not empty, is what holds them, and
// outlives the source. Throws DeviceFailure.
std::unique_ptr<SlabSource> copying_source(std::uint32_t slabs, std::size_t slab_bytes,
                                           MutableBytes pinned);

}  // namespace millrace::cuda
