// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "gpu/host/device_fault.h"

// CUDA's calls as C++ has them: errors are exceptions, what is made is owned. For this folder only.
namespace millrace::cuda {

// Throws the DeviceFailure that an error is, with what could not be done and CUDA's own words.
void check(cudaError_t error, const char* what);

// Whether an event has. Throws where it never will.
bool has_passed(cudaEvent_t event, const char* what);

// Makes a device this thread's current one; what it was before comes back at the end, unless that
// would take memory of a device that nobody in this process uses.
class OnDevice {
 public:
  explicit OnDevice(int ordinal);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;  // -1: nothing is to come back
};

// An error that nobody is told. It must not be taken for that of a later call.
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

// Whether a device answers a call that needs its context. False after an error that killed it.
bool answers(int ordinal);

Event make_event(unsigned flags);
// Never the default stream, nor bound to it.
Stream make_stream();
Memory allocate(std::size_t bytes);
// Null where they cannot be locked: copies from them are slower then.
LockedPages lock_pages(MutableBytes pages);

}  // namespace millrace::cuda
