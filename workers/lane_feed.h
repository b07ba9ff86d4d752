// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "batcher/batch.h"
#include "gpu/batch_writer.h"
#include "gpu/device.h"
#include "gpu/slab_ring.h"
#include "schemas/worker_messages.h"

namespace millrace {

// The shape of what a pipeline's workers get.
struct FeedShape {
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
// Confined to the lane's thread.
class LaneFeed {
 public:
  // `slabs` bounds the batches on their way and at the worker. `hand` gets each batch in order; on
  // the host its tensor and arrays are in `slab` until finish(). `reports` gets what is then to be
  // given to ended() and freed() here, on a thread of the device. Throws std::system_error and
  // DeviceFailure where memory or device refuse.
  using Hand = std::function<void(const worker_protocol::HandedBatch&, Bytes slab)>;
  LaneFeed(const FeedShape& shape, std::unique_ptr<Device> device, std::uint32_t slabs, Hand hand,
           DeviceReports reports);

  bool has_slab() const { return ring_.has_free(); }

  // Requires: has_slab(). `opened` are the streams that the worker sees first in this batch. A
  // device that has failed reports it; nothing is handed then.
  void write(const Batch& batch, std::vector<worker_protocol::OpenedStream> opened);

  // The worker gave its oldest batch back: when it was copied, or, where that is not known yet,
  // when its copy began.
  Time finish();

  // What the device reported of its slabs. True: one is free.
  bool ended(const CopyEnded& copy);
  void freed(std::uint32_t slab);

  // The worker is lost: what it is to be handed reaches nobody.
  void stop() {
    hand_ = nullptr;
    device_slabs_->stop();
  }

  // The worker cannot open the device's slabs, and copies from those of the host. What the device
  // reports later is of no meaning. Until now nothing was read of the device's.
  void leave_copies_to_worker();

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

  const RowFormat format_;
  const std::uint32_t width_;
  std::unique_ptr<Device> device_;
  SlabRing ring_;
  Hand hand_;
  std::unique_ptr<DeviceSlabs> device_slabs_;  // before ring_ goes, its copies end
  BatchWriter writer_;
  std::vector<Slab> slabs_;
  std::deque<std::uint32_t> on_their_way_;  // slabs of batches not finished, in order
};

}  // namespace millrace
