// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace millrace {

// What another process on the same machine opens device memory, or an event, by. Secret: whoever
// has it can read what goes through.
using DeviceHandle = std::array<std::byte, 64>;

// A lane's slabs on its device, slab i at i * slab_bytes, and two events for each: `copied` has
// passed when its batch lies there, `finished` when the worker reads it no more.
struct DeviceHandles {
  DeviceHandle memory{};
  std::vector<DeviceHandle> copied, finished;

  bool operator==(const DeviceHandles&) const = default;
};

}  // namespace millrace
