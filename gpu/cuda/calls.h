// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "gpu/host/device_fault.h"

// CUDA's calls with exceptions for errors and owners for what they create. For this folder only.
namespace millrace::cuda {

// Throws a DeviceFailure unless `error` is cudaSuccess. `what` is what the call was to do; CUDA's
// text of the error follows it. Clears the error, so that no later call returns it.
void check(cudaError_t error, const char* what);

// True if the event has passed. Does not wait. Throws DeviceFailure if the query fails.
bool has_passed(cudaEvent_t event, const char* what);

// Makes a device the current one of this thread while it lives. Then the previous device is the
// current one again, unless this process has no context there: making it current would create one.
// Confined to one thread.
class OnDevice {
 public:
  explicit OnDevice(int ordinal);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int previous_ = -1;  // -1: none to restore
};

// Ignores an error, and clears it so that no later call returns it.
inline void ignore(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
}

struct Destroy {
  void operator()(cudaEvent_t event) const { ignore(cudaEventDestroy(event)); }
  void operator()(cudaStream_t stream) const { ignore(cudaStreamDestroy(stream)); }
};
struct FreeMemory {
  void operator()(std::byte* memory) const { ignore(cudaFree(memory)); }
};
struct UnlockPages {
  void operator()(std::byte* pages) const { ignore(cudaHostUnregister(pages)); }
};

using Event = std::unique_ptr<CUevent_st, Destroy>;
using Stream = std::unique_ptr<CUstream_st, Destroy>;
using Memory = std::unique_ptr<std::byte, FreeMemory>;
using LockedPages = std::unique_ptr<std::byte, UnlockPages>;

// True if a call that needs the device's context succeeds; false after an error that destroyed it.
bool is_alive(int ordinal);

Event make_event(unsigned flags);
// A stream that does not synchronise with the default stream.
Stream make_stream();
Memory allocate(std::size_t bytes);
// Null if the pages cannot be locked: copies from them are slower then. `pages` outlives the
// result.
LockedPages lock_pages(MutableBytes pages);

}  // namespace millrace::cuda
