// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

#include "tests/support/simulated_cuda/calls.h"
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

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion", WhenDead::answer, [&] {
    const bool known = std::string_view(symbol) == "cuDevicePrimaryCtxGetState";
    *function = known ? reinterpret_cast<void*>(&primary_context_state) : nullptr;
    if (result) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}

}  // extern "C"
