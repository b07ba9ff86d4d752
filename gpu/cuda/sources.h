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

// Slabs in device memory and their events. Their owner keeps them, and outlives the source. Slab i
// is on the device when copied[i] has passed. The source records finished[i] when the slab is not
// read any more.
struct CopiedSlabs {
  std::byte* memory = nullptr;
  std::size_t slab_bytes = 0;
  std::vector<cudaEvent_t> copied, finished;
};

// A source of this process's own slabs.
std::unique_ptr<SlabSource> source_of(CopiedSlabs slabs);

// Opens the slabs of another process. Throws DeviceFailure.
std::unique_ptr<SlabSource> open_source(std::size_t slab_bytes, const DeviceHandles& handles);

// A source that copies slabs from host memory when they are acquired. `pinned` is the memory of the
// slabs, whose pages are locked if possible, or empty. It must outlive the source. Throws
// DeviceFailure.
std::unique_ptr<SlabSource> copying_source(std::uint32_t slabs, std::size_t slab_bytes,
                                           MutableBytes pinned);

}  // namespace millrace::cuda
