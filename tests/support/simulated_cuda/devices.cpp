// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/devices.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/memory.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"

namespace millrace::test::simulated_cuda {

namespace {

constexpr char product[] = "Simulated GPU";
// Plausible values of a current device.
constexpr int major = 9, minor = 0, processors = 132, copy_engines = 3, warp = 32, bus = 0x10;

bool exists(int device) { return device >= 0 && device < device_count(); }

cudaError_t describe(cudaDeviceProp* properties, int device) {
  if (!properties || !exists(device)) return cudaErrorInvalidDevice;
  *properties = {};
  std::memcpy(properties->name, product, sizeof product);
  const auto uuid = uuid_of(physical_device(device));
  std::copy(uuid.begin(), uuid.end(), properties->uuid.bytes);
  properties->totalGlobalMem = device_memory();
  properties->major = major;
  properties->minor = minor;
  properties->multiProcessorCount = processors;
  properties->asyncEngineCount = copy_engines;
  properties->warpSize = warp;
  properties->pciBusID = bus + physical_device(device);
  properties->unifiedAddressing = 1;
  properties->canMapHostMemory = 1;
  return cudaSuccess;
}

cudaError_t attribute(int* value, cudaDeviceAttr which, int device) {
  if (!value) return cudaErrorInvalidValue;
  if (!exists(device)) return cudaErrorInvalidDevice;
  switch (which) {
    case cudaDevAttrComputeCapabilityMajor: *value = major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = minor; break;
    case cudaDevAttrMultiProcessorCount: *value = processors; break;
    case cudaDevAttrAsyncEngineCount: *value = copy_engines; break;
    case cudaDevAttrWarpSize: *value = warp; break;
    case cudaDevAttrPciBusId: *value = bus + physical_device(device); break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrIpcEventSupport: *value = 1; break;
    default: *value = 0;
  }
  return cudaSuccess;
}

cudaError_t use(int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  set_current_device(device);
  mark_in_use(device);
  return cudaSuccess;
}

}  // namespace

std::array<char, 16> uuid_of(int physical) {
  std::array<char, 16> uuid = {'s', 'i', 'm', 'u', 'l', 'a', 't',
                               'e', 'd', ' ', 'C', 'U', 'D', 'A'};
  uuid.back() = static_cast<char>(physical);
  return uuid;
}

std::string uuid_text(int physical) {
  std::string text = "GPU-";
  for (const char byte : uuid_of(physical)) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
    const std::size_t length = text.size();
    if (length == 12 || length == 17 || length == 22 || length == 27) text += '-';
  }
  return text;
}

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

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return call("cudaDeviceGetPCIBusId", WhenDead::answer, [&] {
    if (!id || length < 13) return cudaErrorInvalidValue;
    if (!exists(device)) return cudaErrorInvalidDevice;
    std::snprintf(id, 13, "0000:%02X:00.0", static_cast<unsigned>(bus + physical_device(device)));
    return cudaSuccess;
  });
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
