// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/memory.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"

namespace millrace::test::simulated_cuda {

namespace {

constexpr char product[] = "Simulated GPU";

bool exists(int device) { return device >= 0 && device < device_count(); }

// The same in every process.
std::array<char, 16> uuid_of(int device) {
  std::array<char, 16> uuid = {'s', 'i', 'm', 'u', 'l', 'a', 't',
                               'e', 'd', ' ', 'C', 'U', 'D', 'A'};
  uuid.back() = static_cast<char>(device);
  return uuid;
}

cudaError_t describe(cudaDeviceProp* properties, int device) {
  if (!properties || !exists(device)) return cudaErrorInvalidDevice;
  *properties = {};
  std::memcpy(properties->name, product, sizeof product);
  const auto uuid = uuid_of(device);
  std::copy(uuid.begin(), uuid.end(), properties->uuid.bytes);
  properties->totalGlobalMem = device_memory();
  return cudaSuccess;
}

cudaError_t attribute(int* value, cudaDeviceAttr which, int device) {
  if (!value) return cudaErrorInvalidValue;
  if (!exists(device)) return cudaErrorInvalidDevice;
  *value = which == cudaDevAttrIpcEventSupport ? 1 : 0;
  return cudaSuccess;
}

cudaError_t use(int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  set_current_device(device);
  mark_in_use(device);
  return cudaSuccess;
}

}  // namespace

}  // namespace millrace::test::simulated_cuda

using namespace millrace::test::simulated_cuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", WhenDead::answer, [&] {
    if (driver_version() < CUDART_VERSION) return cudaErrorInsufficientDriver;
    *count = device_count();
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", WhenDead::answer, [&] {
    if (const cudaError_t error = use(device)) return error;
    return death_of(device);
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", WhenDead::answer, [&] {
    *device = current_device();
    return device_count() > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", WhenDead::answer,
              [&] { return describe(properties, device); });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return call("cudaDeviceGetAttribute", WhenDead::answer,
              [&] { return attribute(value, which, device); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", WhenDead::answer, [&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&] {
    *total = device_memory();
    *free = device_memory() - device_bytes_used(current_device());
    return cudaSuccess;
  });
}

}  // extern "C"
