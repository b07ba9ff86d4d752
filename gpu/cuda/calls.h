// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "gpu/host/device_fault.h"

// CUDA's calls with exceptions for errors and owners for what they create. For this folder only.
namespace millrace::cuda {

// Throws a DeviceFailure unless `error` is cudaSuccess. `what` is what the call was to do; CUDA's
// text of the error follows it. Clears the error, so that no later call returns it.
void check(cudaError_t error, const char* what);

// True if the event has passed. Does not wait. Throws DeviceFailure if the query fails.
bool has_passed(cudaEvent_t event, const char* what);

// Ignores an error, and clears it so that no later call returns it.
inline void ignore(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
}

// While it lives, this thread may query, allocate and free although a thread of this process
// captures a graph. By default CUDA refuses these calls during any capture, and breaks the capture.
// If this process has no context on the thread's current device, one is created. Confined to one
// thread.
class Relaxed {
 public:
  Relaxed() { exchange(); }
  ~Relaxed() { exchange(); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  void exchange() { ignore(cudaThreadExchangeStreamCaptureMode(&mode_)); }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then the mode to restore
};

// Makes a device the current one of this thread while it lives, and relaxes the thread. Then the
// previous device is the current one again, unless this process has no context there: making it
// current would create one. Confined to one thread.
class OnDevice {
 public:
  explicit OnDevice(int ordinal);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const int previous_;     // -1: none to restore
  const Relaxed relaxed_;  // after the device was selected: a call may create a context
};

// Calls a function of CUDA that frees `resource`, in a destructor.
template <class Resource>
void free_with(cudaError_t (*function)(Resource), Resource resource) {
  const Relaxed relaxed;
  ignore(function(resource));
}

struct Destroy {
  void operator()(cudaEvent_t event) const { free_with(cudaEventDestroy, event); }
  void operator()(cudaStream_t stream) const { free_with(cudaStreamDestroy, stream); }
};
struct FreeMemory {
  void operator()(std::byte* memory) const { free_with<void*>(cudaFree, memory); }
};
struct UnlockPages {
  void operator()(std::byte* pages) const { free_with<void*>(cudaHostUnregister, pages); }
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
// The same with the highest priority: its kernels do not queue behind those of other streams.
Stream make_urgent_stream();
Memory allocate(std::size_t bytes);
// True if the driver says that the memory begins an allocation. An IPC handle opens the whole
// allocation.
bool begins_block(const Memory& memory);
// Null if the pages cannot be locked: copies from them are slower then. `pages` outlives the
// result.
LockedPages lock_pages(MutableBytes pages);
// The same for all slabs in `memory`, or none: empty if one cannot be locked. Slab by slab, because
// calls of other threads wait meanwhile, also those that copy. Requires: slab_bytes is a number of
// pages.
std::vector<LockedPages> lock_slabs(MutableBytes memory, std::size_t slab_bytes);

}  // namespace millrace::cuda
