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

// The result of DeviceSlabs::copy().
enum class Copying : std::uint8_t {
  there,      // nothing to copy: the worker reads the batch where it was written
  under_way,  // started: CopyEnded is reported at its end
  failed,     // the device has failed, DeviceLost was reported: the batch will not arrive
};

// The slabs of one lane on its device: the ring's pages, locked in memory if possible, and the
// device memory that they are copied to. The ring must outlive this.
//
// The destructor waits for the copies that are under way. After it nothing is reported.
//
// Confined to one thread at a time: it may be created and destroyed on another.
class DeviceSlabs {
 public:
  virtual ~DeviceSlabs() = default;

  // Starts the copy of the batch that was written into slab number `slab`: the bytes of
  // layout_of(shape). Does not wait for it. Requires: nothing reads the slab on the device. That is
  // so before its first copy, after give_back() returned true and after SlabFreed.
  [[nodiscard]] virtual Copying copy(std::uint32_t slab, const SlabShape& shape) = 0;

  // Call this when the worker has returned the slab. True: the slab may be written at once. False:
  // the device still computes with it, and SlabFreed is reported later; or the device has failed.
  // Requires: its copy has ended.
  [[nodiscard]] virtual bool give_back(std::uint32_t slab) = 0;

  // Call this when the worker is gone. The device no longer polls for slabs that were given back,
  // so SlabFreed does not follow for them.
  virtual void stop() = 0;

  // The CUDA IPC handles by which another process opens the slabs. Null if there are none: that
  // process uses the shared memory of the ring.
  virtual const DeviceHandles* handles() const = 0;

  // True if the ring's pages are locked in memory, so that copies are fast and asynchronous.
  virtual bool pinned() const = 0;

  // Creates a reader of these slabs for a consumer in this process. `format` is that of the tensor.
  // The reader must be destroyed before this. Throws DeviceFailure.
  virtual std::unique_ptr<DeviceReader> reader(const RowFormat& format) = 0;
};

// The device on which a lane's worker computes: the host, a CUDA device of this process, or a
// device to which the worker copies the slabs itself (host_device.h). The host device always works.
// Its workers map the slabs into their memory, so nothing is copied.
//
// Confined to one thread.
class Device {
 public:
  virtual ~Device() = default;

  // `host`, `cuda:N` or a UUID. Valid while this exists.
  virtual std::string_view name() const = 0;
  // The index in Devices::usable(); nullopt for the host and for a device to which the worker
  // copies.
  virtual std::optional<std::size_t> device_index() const { return std::nullopt; }

  // The format in which the host writes slabs for tensors of format `tensor`. On the host that is
  // `tensor`. Other devices convert: slabs hold the unconverted frames (RowFormat::unexpanded()).
  virtual RowFormat slab_format(const RowFormat& tensor) const = 0;

  // Sets up the slabs of `ring` on the device. `ring` must outlive the result. `reports` receives
  // what happens to the slabs. Throws DeviceFailure and std::system_error.
  virtual std::unique_ptr<DeviceSlabs> attach(const SlabRing& ring, DeviceReports reports) = 0;
};

}  // namespace millrace
