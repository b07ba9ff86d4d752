// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "gpu/host/slab_layout.h"

namespace millrace {

// A cudaStream_t. The host device ignores it.
using DeviceStream = void*;

// A batch in the memory of its device: the tensor [rows, width, values] of the dtype, contiguous
// and aligned to 256 bytes, and the control arrays of rows + marks entries each (slab_layout.h).
// The reader owns the memory and the event. They are valid from take() to give_back().
struct DeviceArrays {
  std::byte* tensor = nullptr;
  const std::int32_t* slot = nullptr;
  const std::int32_t* left = nullptr;
  const std::int32_t* size = nullptr;
  const std::int32_t* right = nullptr;
  const std::uint8_t* flags = nullptr;
  const std::uint8_t* reset = nullptr;  // 1 if flags has RESET, else 0
  // The companions, as in the slab (companion_layout.h).
  std::byte* companions = nullptr;
  void* ready = nullptr;  // a cudaEvent_t that passes when all of it is written; null on the host
};

// Reads slabs in the process of the model, and makes them tensors for the model's CUDA streams:
//
//   if (reader.has_arrived(slab)) …
//   const DeviceArrays batch = reader.take(slab, shape, host);
//   reader.use_on(slab, stream);            // `stream` waits for the batch
//   model<<<…, stream>>>(batch.tensor, …);
//   reader.give_back(slab);                 // the slab is free when the stream has come this far
//
// Calls do not wait for the device, with two exceptions. A reader that copies slabs itself waits in
// give_back() for the slab's copy. The destructor waits for the batches that were given back; it
// does not throw. All other functions throw DeviceFailure.
//
// Confined to one thread. The thread's current CUDA device is the same after a call as before,
// unless this process has no context on that device: then the reader's device is the current one.
class DeviceReader {
 public:
  virtual ~DeviceReader() = default;

  // True if the slab's batch can be taken: its copy has ended, or this reader copies it itself.
  // take() enqueues no wait for another process: if that process were killed, the stream would
  // never continue.
  virtual bool has_arrived(std::uint32_t slab) const = 0;

  // Enqueues the copy of the slab and the kernel that makes the tensor, where these are needed, on
  // a stream of the reader. Returns the addresses of the batch. `host` is the slab in host memory,
  // as written with `shape`. It must stay unchanged until give_back(). It may be empty if the
  // service copies the slabs to the device. Requires: has_arrived(slab), or the slabs are this
  // process's own and the copy was started.
  virtual DeviceArrays take(std::uint32_t slab, const SlabShape& shape, MutableBytes host) = 0;

  // Copies the arrays `flags` and `reset` from `host` to the device once more, because they changed
  // there after the batch was written. Requires: it was taken, and use_on() was not called yet.
  virtual void renew_flags(const DeviceArrays& arrays, std::uint32_t slab, const SlabShape& shape,
                           MutableBytes host) = 0;

  // Makes `stream` wait for the batch, and the slab wait for `stream` after give_back(). Call this
  // for each stream before work that reads the batch is put there. The stream must exist until
  // give_back(). Requires: it was taken.
  virtual void use_on(std::uint32_t slab, DeviceStream stream) = 0;

  // Returns the slab. It is free when the work that the streams of use_on() have now is done. Work
  // that is put on a stream afterwards must not use the arrays. Requires: it was taken.
  virtual void give_back(std::uint32_t slab) = 0;
};

}  // namespace millrace
