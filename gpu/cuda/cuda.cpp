// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cuda.h"

#include <array>

#include "gpu/cuda/calls.h"

namespace millrace::cuda {

namespace {

std::string uuid_text(const cudaUUID_t& uuid) {
  constexpr char digits[] = "0123456789abcdef";
  constexpr std::array<std::size_t, 5> groups{4, 2, 2, 2, 6};
  std::string text = "GPU";
  std::size_t at = 0;
  for (const std::size_t bytes : groups) {
    text += '-';
    for (const std::size_t end = at + bytes; at < end; ++at) {
      const auto byte = static_cast<unsigned char>(uuid.bytes[at]);
      text += digits[byte / 16];
      text += digits[byte % 16];
    }
  }
  return text;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// There is no driver, or one that is too old.
std::string lack_of_driver() {
  (void)cudaGetLastError();
  int newest = 0;
  ignore(cudaDriverGetVersion(&newest));
  const std::string needed = "CUDA " + std::string(version()) + " or newer";
  if (newest == 0) return "no driver for " + needed;
  return "the driver is for CUDA " + version_text(newest) + "; one for " + needed + " is needed";
}

FoundDevice describe(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "querying a device");
  return {.ordinal = ordinal,
          .name = "cuda:" + std::to_string(ordinal),
          .uuid = uuid_text(properties.uuid),
          .product = properties.name,
          .memory = properties.totalGlobalMem};
}

}  // namespace

std::string_view version() {
  static const std::string text = version_text(CUDART_VERSION);
  return text;
}

Machine find_devices() try {
  Machine machine;
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver) return {.devices = {}, .why_none = lack_of_driver()};
  check(counted, "no CUDA device");
  for (int ordinal = 0; ordinal < count; ++ordinal) machine.devices.push_back(describe(ordinal));
  if (count == 0) machine.why_none = "no CUDA device";
  return machine;
} catch (const DeviceFailure& error) {
  return {.devices = {}, .why_none = error.what()};
}

}  // namespace millrace::cuda
