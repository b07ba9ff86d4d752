// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "base/time.h"
#include "gpu/host/device_fault.h"

namespace millrace {

// The copy of a slab has ended: the batch lay where the worker reads it at this instant.
struct CopyEnded {
  std::uint32_t slab = 0;
  Time at;
  std::size_t bytes = 0;
  std::optional<Duration> took = {};  // by the device's own clock; of some copies only
};

// A slab that was given back may be written again.
struct SlabFreed {
  std::uint32_t slab = 0;
};

// The device has failed: it copies no more in this process, or, where it goes on, not to these
// slabs.
struct DeviceLost {
  DeviceFault fault{};
  std::string what;
  bool goes_on = false;
  bool told = false;  // others on the device have reported it: it counts once
};

using DeviceReport = std::variant<CopyEnded, SlabFreed, DeviceLost>;

// Gets what happens to slabs, on a thread of the device. For one slab in the order in which it
// happens.
using DeviceReports = std::function<void(DeviceReport)>;

}  // namespace millrace
