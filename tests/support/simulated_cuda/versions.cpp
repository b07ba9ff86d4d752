// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <array>

#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/settings.h"

using namespace millrace::test::simulated_cuda;

namespace {

struct Known {
  cudaError_t error;
  const char *name, *text;
};

// The errors that programs usually get, with CUDA's texts.
constexpr std::array known = {
    Known{cudaSuccess, "cudaSuccess", "no error"},
    Known{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    Known{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    Known{cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    Known{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
          "CUDA driver version is insufficient for CUDA runtime version"},
    Known{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    Known{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    Known{cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
    Known{cudaErrorMapBufferObjectFailed, "cudaErrorMapBufferObjectFailed",
          "mapping of buffer object failed"},
    Known{cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable",
          "uncorrectable ECC error encountered"},
    Known{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
          "invalid resource handle"},
    Known{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    Known{cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
          "an illegal memory access was encountered"},
    Known{cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout",
          "the launch timed out and was terminated"},
    Known{cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
          "part or all of the requested memory range is already mapped"},
    Known{cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
          "pointer does not correspond to a registered memory region"},
    Known{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    Known{cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    Known{cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    Known{cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
          "operation not permitted when stream is capturing"},
    Known{cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
          "operation failed due to a previous error during capture"},
};

constexpr Known unknown{cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};

const Known& find(cudaError_t error) {
  for (const Known& one : known)
    if (one.error == error) return one;
  return unknown;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) { return find(error).name; }

const char* cudaGetErrorString(cudaError_t error) { return find(error).text; }

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", WhenDead::answer, [&] {
    *version = driver_version();
    return cudaSuccess;
  });
}

}  // extern "C"
