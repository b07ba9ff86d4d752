// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_spin.h"

#include <cuda_runtime_api.h>

#include "gpu/cuda/calls.h"

namespace millrace::bench {

namespace {

__global__ void spin_for(long long cycles) {
  const long long begun = clock64();
  while (clock64() - begun < cycles) {
  }
}

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  cuda::check(cudaGetDevice(&device), "querying the current device");
  cuda::check(cudaDeviceGetAttribute(&value, which, device), "querying a device");
  return value;
}

}  // namespace

void spin(std::chrono::microseconds time, DeviceStream stream) {
  static const int kilohertz = attribute(cudaDevAttrClockRate);
  static const int multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  const long long cycles = time.count() * kilohertz / 1000;
  spin_for<<<multiprocessors, 128, 0, static_cast<cudaStream_t>(stream)>>>(cycles);
  cuda::check(cudaGetLastError(), "computing");
}

}  // namespace millrace::bench
