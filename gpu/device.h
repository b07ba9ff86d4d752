// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/frame_type.h"
#include "base/result.h"
#include "base/time.h"
#include "gpu/row_format.h"
#include "gpu/slab_layout.h"
#include "gpu/slab_ring.h"

namespace millrace {

// The copy of a slab has ended: the batch lay where the worker reads it at this instant; nothing
// if the device failed and copies no more. Called before copy() returns, or later from a thread
// of the device.
using Copied = std::function<void(std::uint32_t slab, std::optional<Time> at)>;

// A lane's slabs as its device has them: the ring's memory pinned, and on the device the copies.
// The destructor waits for copies under way, then no `Copied` is called any more.
//
// Confined to the lane's thread.
class DeviceSlabs {
 public:
  virtual ~DeviceSlabs() = default;

  // Starts the copy of the batch that was written into the slab, and of no more bytes than its
  // layout has. The slab is not to be written until it was copied and the worker has finished.
  virtual void copy(std::uint32_t slab, const SlabShape& shape) = 0;
};

// Where the workers of a lane compute. The host device always works: host workers map the slabs,
// so that its copies are nothing.
//
// Confined to one thread.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;

  // What the host is to write into slabs for tensors of this format: its dtype, or its frames
  // where the device expands them itself.
  virtual Element slab_element(const RowFormat& format) const = 0;

  // Makes a ring known to the device; `format` is that of the tensor. The ring must outlive the
  // result. Throws std::system_error if the device refuses the memory or has none left.
  virtual std::unique_ptr<DeviceSlabs> attach(const SlabRing& ring, const RowFormat& format,
                                              Copied copied) = 0;
};

struct DeviceError {
  std::string message;  // a sentence that names the device and those there are
};

// By its name, which a worker or the configuration gave.
Result<std::unique_ptr<Device>, DeviceError> open_device(std::string_view name);

}  // namespace millrace
