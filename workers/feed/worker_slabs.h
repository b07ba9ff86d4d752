// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/ids.h"
#include "base/time.h"
#include "batcher/batch.h"
#include "gpu/host/batch_writer.h"
#include "gpu/host/device.h"
#include "gpu/host/slab_ring.h"
#include "schemas/worker_messages.h"

namespace millrace {

// The shape of the batches of a pipeline.
struct BatchShape {
  RowFormat format;
  std::uint32_t slots = 0;  // also the most marker rows of a batch
  std::uint32_t rows = 0;   // most rows with frames of a batch
  std::uint32_t width = 0;  // most columns of a row

  // Bytes of a slab for the largest batch.
  std::size_t slab_bytes(Element element) const {
    return layout_of({rows, slots, width, format.values, element}).bytes;
  }
};

// The slabs of one worker. For each batch it writes the rows into a slab, starts the
// copy to the device, and fills in the message for the worker. The message can be sent while the
// copy is in progress: an event of the device shows the worker when it has ended. A slab is free
// again when the worker has returned its batch, the copy has ended, and the worker's device has
// finished with it.
//
// Confined to one thread, a lane's home thread. It may be constructed and destroyed on another.
class WorkerSlabs {
 public:
  // `slabs` limits the batches that are handed over or about to be. `reports` is called on a thread
  // of the device; the caller passes CopyEnded and SlabFreed on to on_copy_ended() and
  // on_slab_freed(). Throws std::system_error if memory cannot be allocated, or DeviceFailure.
  WorkerSlabs(const BatchShape& shape, std::unique_ptr<Device> device, std::uint32_t slabs,
              DeviceReports reports);

  bool has_slab() const { return ring_.has_free(); }

  // Writes a batch into a slab and starts its copy. Returns the message for the worker, or null if
  // the device has failed, which the device reports. The message, and the tensor and arrays in the
  // slab on the host, are valid until finish() is called for this batch. `opened`: the streams
  // whose first row at this worker is in this batch. Requires: has_slab(), and rows and width of
  // the batch are at most those of the shape.
  const worker_protocol::HandedBatch* write(const Batch& batch,
                                            std::vector<worker_protocol::OpenedStream> opened);

  // When the copy of the worker's oldest batch ended; if that is not reported yet, when it began.
  // Meaningless without batches.
  Time oldest_copied() const;
  // The worker returned its oldest batch. Requires: it has one.
  void finish();

  // The device reported the end of a copy. Returns true if the slab is free now.
  bool on_copy_ended(const CopyEnded& copy);
  // The device reported that it has finished with a slab. The slab is free now.
  void on_slab_freed(std::uint32_t slab);

  // The worker is lost: no more batches are written.
  void stop() { device_slabs_->stop(); }
  // The descriptor of the ring was sent to the worker and is not needed any more.
  void close_descriptor() { ring_.close_descriptor(); }

  // The worker cannot open the device's slabs: it copies from the slabs on the host from now on.
  // Returns the device's slabs, from which nothing was read. The caller destroys them before this
  // object, ignores their reports, and calls on_former_slabs_freed() afterwards. Until then a slab
  // whose copy is in progress is not free.
  [[nodiscard]] std::unique_ptr<DeviceSlabs> leave_copies_to_worker();
  void on_former_slabs_freed();

  // Set by SlabMaker.
  struct Properties {
    std::uint64_t number = 0;           // identifies the slabs in reports
    std::optional<std::size_t> thread;  // device index of their thread in SlabThreads;
                                        // nullopt: the host's thread
    Share bytes;                        // share of the budget for slabs on the host
    bool pageable = false;              // their pages could not be locked for the device
    std::string copy_reason;            // why the worker copies from the host; empty: it does not
  };
  Properties& properties() { return properties_; }
  const Properties& properties() const { return properties_; }

  const SlabRing& ring() const { return ring_; }
  const Device& device() const { return *device_; }
  const DeviceSlabs& device_slabs() const { return *device_slabs_; }
  // The format in which the host writes the slabs.
  const RowFormat& format() const { return format_; }

 private:
  struct Slab {
    worker_protocol::HandedBatch message;
    bool copying = false;
    bool returned = false;
  };

  const worker_protocol::HandedBatch* copy(std::uint32_t slab, const SlabShape& shape);
  bool release_if_done(std::uint32_t slab);

  Properties properties_;
  const RowFormat format_;
  std::unique_ptr<Device> device_;
  SlabRing ring_;
  std::unique_ptr<DeviceSlabs> device_slabs_;  // the destructor waits for its copies
  BatchWriter writer_;
  std::vector<Slab> slabs_;
  std::deque<std::uint32_t> in_flight_;  // slabs of batches that are not returned, in order
};

}  // namespace millrace
