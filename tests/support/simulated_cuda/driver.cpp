// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/memory.h"
#include "tests/support/simulated_cuda/settings.h"

using namespace millrace::test::simulated_cuda;

namespace {

// The driver's function that reports whether a device is in use in this process.
CUresult primary_context_state(CUdevice device, unsigned* flags, int* active) {
  if (device < 0 || device >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = is_in_use(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

// The driver's block of memory. If a test makes this function fail, the memory does not begin it.
CUresult address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr at) {
  const Allocation* allocation = allocation_at(reinterpret_cast<void*>(at));
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t before = injected("cuMemGetAddressRange") != cudaSuccess ? page_bytes : 0;
  *base = reinterpret_cast<CUdeviceptr>(allocation->pointer) - before;
  *bytes = allocation->bytes + before;
  return CUDA_SUCCESS;
}

void* find(std::string_view symbol) {
  if (symbol == "cuDevicePrimaryCtxGetState")
    return reinterpret_cast<void*>(&primary_context_state);
  if (symbol == "cuMemGetAddressRange") return reinterpret_cast<void*>(&address_range);
  return nullptr;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion", WhenDead::answer, [&] {
    *function = find(symbol);
    if (result)
      *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}

}  // extern "C"
