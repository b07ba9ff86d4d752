// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "gpu/host/slab_layout.h"

namespace millrace {

// A cudaStream_t; on the host device nothing.
using DeviceStream = void*;

// Where a batch lies on its device: the tensor [rows, width, values] of the dtype, contiguous, its
// base aligned to 256 bytes, and the control arrays of rows + marks entries.
struct DeviceArrays {
  std::byte* tensor = nullptr;
  const std::int32_t* slot = nullptr;
  const std::int32_t* left = nullptr;
  const std::int32_t* size = nullptr;
  const std::int32_t* right = nullptr;
  const std::uint8_t* flags = nullptr;
  const std::uint8_t* reset = nullptr;  // 1 where flags has RESET
  void* ready = nullptr;                // a cudaEvent_t: has passed once all of it is there
};

// The end of slabs where the model is. Batches become tensors on the model's streams:
//
//   if (reader.has_arrived(slab)) …
//   const DeviceArrays batch = reader.take(slab, shape, host);
//   reader.use_on(slab, stream);     // what is put on the stream from here on finds the batch
//   model<<<…, stream>>>(batch.tensor, …);
//   reader.give_back(slab);          // and when that is done the slab may be written again
//
// No call waits for the device, but give_back() where slabs are copied here, for their copies. The
// destructor waits for what was given back. All throw
// DeviceFailure. Confined to one thread, whose current device stays as it is, unless that is one
// that nobody in this process uses.
class DeviceReader {
 public:
  virtual ~DeviceReader() = default;

  // Whether the batch is there to be taken: of another process, its copy has ended. So nothing here
  // ever waits on a stream for somebody who may be killed.
  virtual bool has_arrived(std::uint32_t slab) const = 0;

  // Requires: it has arrived. `host` is the slab in memory of the host: what the shape says was
  // written there. It stays until give_back().
  virtual DeviceArrays take(std::uint32_t slab, const SlabShape& shape, MutableBytes host) = 0;

  // Copies the flags and resets of the control arrays to the device once more: those in `host` have
  // changed since the batch was written. Requires: it was taken, and no stream uses it yet.
  virtual void renew_flags(const DeviceArrays& arrays, std::uint32_t slab, const SlabShape& shape,
                           MutableBytes host) = 0;

  // Must be called for each stream that uses the batch, and which lives until give_back().
  // Requires: it was taken.
  virtual void use_on(std::uint32_t slab, DeviceStream stream) = 0;

  // Requires: it was taken. The arrays are invalid for what is put on a stream afterwards.
  virtual void give_back(std::uint32_t slab) = 0;
};

}  // namespace millrace
