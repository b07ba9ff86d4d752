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

// The shape of what a pipeline's workers get.
struct BatchShape {
  RowFormat format;
  std::uint32_t slots = 0;
  std::uint32_t rows = 0;   // of a batch at most
  std::uint32_t width = 0;  // columns

  // What a slab for the largest batch needs.
  std::size_t slab_bytes(Element element) const {
    return layout_of({rows, slots, width, format.values, element}).bytes;
  }
};

// The way of one lane's batches to its worker: a slab for each, rows laid into it, the copy to
// the device, and the message that says where it lies. The message goes out as soon as the copy is
// on its way: the worker sees by an event when it has ended. The slab is the batch's until the
// worker has given it back, its copy has ended, and what the worker's device does with it is done.
//
// Confined to the lane's thread. It may be made and destroyed on another.
class WorkerSlabs {
 public:
  // `slabs` bounds the batches on their way and at the worker. `reports` gets what is then to be
  // given to ended() and freed() here, on a thread of the device. Throws std::system_error and
  // DeviceFailure where memory or device refuse.
  WorkerSlabs(const BatchShape& shape, std::unique_ptr<Device> device, std::uint32_t slabs,
              DeviceReports reports);

  bool has_slab() const { return ring_.has_free(); }

  // Writes a batch into a slab and starts its copy. Returns the message for the worker, valid until
  // finish() is called for this batch; so are, on the host, tensor and arrays in the slab. Returns
  // null if the device has failed, which the device reports. `opened`: the streams that the worker
  // sees first in this batch. Requires: has_slab().
  const worker_protocol::HandedBatch* write(const Batch& batch,
                                            std::vector<worker_protocol::OpenedStream> opened);

  // When the worker's oldest batch was copied, or, where that is not known yet, when its copy
  // began. Without a batch no time of meaning.
  Time oldest_copied() const;
  // The worker gave its oldest batch back. Requires: it has one.
  void finish();

  // What the device reported of its slabs. True: one is free.
  bool ended(const CopyEnded& copy);
  void freed(std::uint32_t slab);

  // The worker is lost: no batch is written any more.
  void stop() { device_slabs_->stop(); }
  // The worker has the descriptor of the ring.
  void close_descriptor() { ring_.close_descriptor(); }

  // The worker cannot open the device's slabs, and copies from those of the host. Returns the
  // device's slabs, from which nothing was read. They must be destroyed before this; what they
  // report must be ignored. Call former_slabs_gone() afterwards: copies that were under way keep
  // their slabs until then.
  [[nodiscard]] std::unique_ptr<DeviceSlabs> leave_copies_to_worker();
  void former_slabs_gone();

  // What the SlabMaker notes about them.
  struct Notes {
    std::uint64_t number = 0;           // reports of other numbers are not about these slabs
    std::optional<std::size_t> thread;  // of SlabThreads, on which they are made and freed
    Share bytes;
    bool pageable = false;      // their pages could not be locked, for the device
    std::string why_it_copies;  // the worker, from the slabs of the host; empty: it need not
  };
  Notes& notes() { return notes_; }
  const Notes& notes() const { return notes_; }

  const SlabRing& ring() const { return ring_; }
  const Device& device() const { return *device_; }
  const DeviceSlabs& device_slabs() const { return *device_slabs_; }
  // As the host writes it.
  const RowFormat& format() const { return format_; }

 private:
  struct Slab {
    worker_protocol::HandedBatch message;
    bool copying = false;
    bool returned = false;
  };

  bool release_if_done(std::uint32_t slab);

  Notes notes_;
  const RowFormat format_;
  const std::uint32_t width_;
  std::unique_ptr<Device> device_;
  SlabRing ring_;
  std::unique_ptr<DeviceSlabs> device_slabs_;  // before ring_ goes, its copies end
  BatchWriter writer_;
  std::vector<Slab> slabs_;
  std::deque<std::uint32_t> on_their_way_;  // slabs of batches not finished, in order
};

}  // namespace millrace
