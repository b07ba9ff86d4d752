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
// the device, and then the message that says where it lies. The slab is the batch's until the
// worker has given it back.
//
// Confined to the lane's thread.
class LaneFeed {
 public:
  // `slabs` bounds the batches on their way and at the worker. `hand` gets each batch once it lies
  // where the worker reads it, in order; its tensor and arrays are in `slab` until finish().
  // Throws std::system_error where memory or device refuse.
  using Hand = std::function<void(const worker_protocol::HandedBatch&, Bytes slab)>;
  LaneFeed(const FeedShape& shape, std::unique_ptr<Device> device, std::uint32_t slabs, Hand hand);

  // Requires: fewer batches than slabs are not finished. `opened` are the streams that the worker
  // sees first in this batch.
  void write(const Batch& batch, std::vector<worker_protocol::OpenedStream> opened);

  // The worker gave its oldest batch back: when it was copied.
  Time finish();

  // The worker is lost: copies that are under way reach nobody.
  void stop() { hand_ = nullptr; }

  const SlabRing& ring() const { return ring_; }
  Element element() const { return format_.dtype; }

 private:
  void copied(std::uint32_t slab, std::optional<Time> at);

  const RowFormat format_;  // of what the host writes
  const std::uint32_t width_;
  std::unique_ptr<Device> device_;
  SlabRing ring_;
  Hand hand_;
  std::unique_ptr<DeviceSlabs> device_slabs_;  // before ring_ goes, its copies end
  BatchWriter writer_;
  std::vector<worker_protocol::HandedBatch> messages_;  // by slab
  std::deque<std::uint32_t> on_their_way_;              // slabs of batches not finished, in order
};

}  // namespace millrace
