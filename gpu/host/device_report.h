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

// The copy of a slab has ended: the batch is on the device.
struct CopyEnded {
  std::uint32_t slab = 0;
  Time at;  // when the thread of the device saw the end
  std::size_t bytes = 0;
  std::optional<Duration> took = {};  // by the device's clock; measured for some copies only
};

// The device has finished with a slab that was given back: it may be written again.
struct SlabFreed {
  std::uint32_t slab = 0;
};

// The device has failed. These slabs are lost: nothing more is copied to them or reported of them.
struct DeviceLost {
  DeviceFault fault{};
  std::string what;           // the call and its error
  bool device_works = false;  // the failure concerns these slabs only; false: the whole device
  bool repeated = false;      // other slabs have reported this failure of the device: do not count
};

using DeviceReport = std::variant<CopyEnded, SlabFreed, DeviceLost>;

// Receives what happens to slabs, for each slab in order. Called on a thread of the device;
// DeviceLost also inside DeviceSlabs::copy() and give_back(). Must not throw.
using DeviceReports = std::function<void(DeviceReport)>;

}  // namespace millrace
