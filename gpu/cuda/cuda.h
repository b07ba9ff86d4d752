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

// CUDA as devices.cpp and the workers' library use it. Without the CUDA toolkit absent.cpp defines
// these functions: they find no device, and throw DeviceFailure. Thread-safe.
namespace millrace::cuda {

// The version of the toolkit that this was built with, such as "13.0"; "none" without one.
std::string_view version();

// A CUDA device. The driver may number devices differently in each process.
struct FoundDevice {
  int ordinal = 0;           // in this process
  std::string name;          // cuda:ORDINAL
  std::string uuid;          // GPU-…, the same in every process
  std::string product;       // the name of the model
  std::uint64_t memory = 0;  // bytes
};

struct Machine {
  std::vector<FoundDevice> devices;
  std::string why_none;  // the reason if `devices` is empty: no driver, or the error
};

// Queries the driver. Creates no context, and so allocates no device memory.
Machine find_devices();

// Creates the context of this process on the device, unless it exists. That needs device memory and
// up to seconds. Throws DeviceFailure if the device cannot be used.
void create_context(const FoundDevice& device);

// The device memory to allocate for `bytes` bytes of slabs: whole blocks of 2 MiB. An IPC handle
// opens the whole block of the driver, so nothing else may be in it.
constexpr std::size_t whole_blocks(std::size_t bytes) {
  constexpr std::size_t block = std::size_t{2} << 20;
  return (bytes + block - 1) / block * block;
}

// Settings that the slabs of one device share.
struct SlabSettings {
  std::size_t device_index = 0;  // in Devices::usable()
  Budget* bytes = nullptr;       // device memory for slabs; outlives the device
  // Set when the device is found dead: then no slabs call it any more. Outlives the device.
  std::atomic<bool>* lost = nullptr;
};

// Opens the device, and creates its context. Throws DeviceFailure.
std::unique_ptr<Device> open(const FoundDevice& device, const SlabSettings& settings);

// Opens the slabs of another process by their handles. `format` is that of the tensor. Throws
// DeviceFailure, also if the two processes are not in the same IPC and PID namespaces.
std::unique_ptr<DeviceReader> open_slabs(const FoundDevice& device, const RowFormat& format,
                                         std::size_t slab_bytes, const DeviceHandles& handles);

// A reader of slabs in host memory: take() copies each slab to the device. `pinned` is the memory
// of the slabs, whose pages are locked if possible, or empty. It must outlive the reader. Throws
// DeviceFailure.
std::unique_ptr<DeviceReader> copy_slabs(const FoundDevice& device, const RowFormat& format,
                                         std::uint32_t slabs, std::size_t slab_bytes,
                                         MutableBytes pinned);

}  // namespace millrace::cuda
