// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/device_handles.h"
#include "gpu/host/device.h"
#include "gpu/host/device_reader.h"
#include "gpu/host/row_format.h"

// CUDA, as far as it is known outside its own files: cuda_*.cpp where the toolkit was found,
// cuda_absent.cpp elsewhere.
namespace millrace::cuda {

// Of the toolkit that this was built with, like "13.0"; "none" without.
std::string_view version();

// A device as this process counts them.
struct Found {
  int ordinal = 0;
  std::string name;          // cuda:0
  std::string uuid;          // GPU-…, the same in every process
  std::string product;       // as its maker calls it
  std::uint64_t memory = 0;  // bytes
};

struct Machine {
  std::vector<Found> devices;
  std::string why_none;  // where there are none: no driver, or which error
};

// Asks the driver, and takes no memory of any device.
Machine look();

// Makes the device's context in this process, if it has none: that takes some of its memory, and up
// to seconds. Throws DeviceFailure where it cannot be used.
void use(const Found& device);

// The memory of a device that slabs of so many bytes take. What a handle opens is a whole block of
// the driver's: nothing else may lie in it.
constexpr std::size_t whole_blocks(std::size_t bytes) {
  constexpr std::size_t block = std::size_t{2} << 20;
  return (bytes + block - 1) / block * block;
}

// How slabs are made for a device.
struct SlabSettings {
  std::size_t place = 0;    // among Devices::usable()
  Budget* bytes = nullptr;  // of its memory that slabs may take; outlives the device
  // Set by whoever finds the device dead: nobody calls it any more. Outlives the device.
  std::atomic<bool>* lost = nullptr;
};

// Takes it into use. Throws DeviceFailure.
std::unique_ptr<Device> open(const Found& device, const SlabSettings& settings);

// The slabs of another process, opened by their handles. Throws DeviceFailure where they cannot be:
// it needs the same IPC and PID namespaces.
std::unique_ptr<DeviceReader> open_slabs(const Found& device, const RowFormat& format,
                                         std::size_t slab_bytes, const DeviceHandles& handles);

// For slabs that lie on the host: copies each when it is taken. `pinned` is what may be locked of
// that memory, or empty; it must outlive the reader.
std::unique_ptr<DeviceReader> copy_slabs(const Found& device, const RowFormat& format,
                                         std::uint32_t slabs, std::size_t slab_bytes,
                                         MutableBytes pinned);

}  // namespace millrace::cuda
