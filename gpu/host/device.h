// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/device_handles.h"
#include "gpu/host/device_reader.h"
#include "gpu/host/device_report.h"
#include "gpu/host/row_format.h"
#include "gpu/host/slab_layout.h"
#include "gpu/host/slab_ring.h"

namespace millrace {

// What became of a copy that was to start.
enum class Copying : std::uint8_t {
  there,      // it took no time: the batch lies where the worker reads it
  under_way,  // CopyEnded is reported when it does
  failed,     // the device has: the batch will not be there
};

// A lane's slabs as its device has them: the ring's memory pinned, and on the device the copies.
// The destructor waits for copies under way, then nothing is reported any more.
//
// Confined to the lane's thread.
class DeviceSlabs {
 public:
  virtual ~DeviceSlabs() = default;

  // Starts the copy of the batch that was written into the slab, of no more bytes than its layout
  // has.
  [[nodiscard]] virtual Copying copy(std::uint32_t slab, const SlabShape& shape) = 0;

  // The worker gave the slab back. True: it may be written at once. False: what the worker put on
  // the device before is not done yet; SlabFreed is reported. Requires: its copy has ended.
  [[nodiscard]] virtual bool give_back(std::uint32_t slab) = 0;

  // The worker is gone: what it has given back is asked for no more, and nothing is reported of it.
  virtual void stop() = 0;

  // What another process opens them by; null where it is to use the shared memory.
  virtual const DeviceHandles* handles() const = 0;

  // Whether the ring's pages are locked in memory, for copies at full speed.
  virtual bool pinned() const = 0;

  // For a consumer in this process; `format` is that of the tensor. It must not outlive this.
  virtual std::unique_ptr<DeviceReader> reader(const RowFormat& format) = 0;
};

// Where the workers of a lane compute. The host device always works: host workers map the slabs,
// so that its copies are nothing.
//
// Confined to one thread.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;
  // Its place among Devices::usable(); nothing for the host, and where the worker copies.
  virtual std::optional<std::size_t> place() const { return std::nullopt; }

  // How the host is to write slabs for tensors of this format: as they will be, or the frames as
  // they are where the device makes the tensor of them.
  virtual RowFormat slab_format(const RowFormat& tensor) const = 0;

  // Makes a ring known to the device. The ring must outlive the result. Throws DeviceFailure and
  // std::system_error.
  virtual std::unique_ptr<DeviceSlabs> attach(const SlabRing& ring, DeviceReports reports) = 0;
};

}  // namespace millrace
