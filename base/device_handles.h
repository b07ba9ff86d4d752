// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace millrace {

// A CUDA IPC handle: lets another process on this machine open a device allocation or an event.
// Secret: a process that has it can read the memory.
using DeviceHandle = std::array<std::byte, 64>;

// A lane's slabs on its device, slab i at i * slab_bytes, and two CUDA events for each slab:
// `copied` completes when its batch is on the device, `finished` when the worker no longer reads
// it.
struct DeviceHandles {
  DeviceHandle memory{};
  std::vector<DeviceHandle> copied, finished;

  bool operator==(const DeviceHandles&) const = default;
};

}  // namespace millrace
