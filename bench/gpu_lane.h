// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/queue.h"
#include "gpu/host/batch_writer.h"
#include "gpu/host/device.h"

namespace millrace::bench {

// A lane and its worker as far as slabs are concerned, in one thread: from s16 to a tensor of f32.
// `device` must outlive it. Confined to one thread.
//
//   const std::uint32_t slab = lane.acquire();
//   const SlabShape shape = lane.build(slab);
//   lane.copy(slab, shape);
//   const DeviceArrays batch = lane.take(slab, shape);
//   lane.reader().use_on(slab, stream);
//   lane.done(slab);
class Lane {
 public:
  // Batches have `rows` rows of `width` frames each. Throws std::runtime_error if the pages of the
  // slabs cannot be locked.
  Lane(Device& device, std::uint32_t slabs, std::uint32_t rows, std::uint32_t width);

  // Waits until a slab may be written. Throws std::runtime_error if the device fails, or does not
  // report within 10 s.
  std::uint32_t acquire();
  SlabShape build(std::uint32_t slab);
  // The shape that every batch has.
  SlabShape shape() const;
  std::size_t bytes() const { return layout_of(shape()).bytes; }
  void copy(std::uint32_t slab, const SlabShape& shape);
  DeviceArrays take(std::uint32_t slab, const SlabShape& shape);
  DeviceReader& reader() { return *reader_; }
  void done(std::uint32_t slab);
  // Waits until all slabs may be written.
  void drain();

 private:
  struct Slab {
    bool copied = false, done = false;
  };

  void handle(const DeviceReport& report);
  void wait();
  void give_back_if_done(std::uint32_t slab);

  RowFormat tensor_;
  RowFormat format_;  // the format of the slabs
  std::uint32_t rows_, width_;
  std::vector<std::byte> frames_;
  BatchWriter writer_;
  SlabRing ring_;
  std::vector<Slab> state_;
  Queue<DeviceReport> reports_;
  std::unique_ptr<DeviceSlabs> slabs_;
  std::unique_ptr<DeviceReader> reader_;
};

}  // namespace millrace::bench
