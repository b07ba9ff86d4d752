// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/time.h"
#include "batcher/batch.h"
#include "chunker/row.h"
#include "gpu/host/device_reader.h"
#include "gpu/host/slab_layout.h"
#include "schemas/worker_messages.h"

namespace millrace {

// Where a batch lies in memory: the tensor [rows, width, values], contiguous and aligned to 256
// bytes, and the control arrays of its rows and, behind them, of its marker rows. A padding row
// has size 0 and slot = slots.
struct BatchArrays {
  MutableBytes data;
  std::span<const std::int32_t> slot, left, size, right;
  std::span<const std::uint8_t> flags;  // flag:: of chunker/row.h
  std::span<const std::uint8_t> reset;  // 1 where flags has RESET
};

// The slab that holds it, for the library.
struct BatchPlace {
  std::uint32_t slab = 0;
  MutableBytes memory;
  SlabShape shape;
};

// A batch that a worker has taken and not yet given back. It refers to memory of its Worker,
// which has to outlive it; all of it is invalid after Worker::done. Confined to one thread.
class WorkerBatch {
 public:
  WorkerBatch(worker_protocol::HandedBatch message, const BatchArrays& arrays,
              const BatchPlace& place = {})
      : message_(std::move(message)), arrays_(arrays), place_(place) {}

  BatchId id() const { return message_.id; }
  Trigger trigger() const { return static_cast<Trigger>(message_.trigger); }
  Time closed() const { return message_.closed; }
  Time taken() const { return taken_; }

  // Of the tensor, padding rows included. 0: there are marker rows alone, no model is called.
  std::uint32_t rows() const { return message_.rows; }
  std::uint32_t width() const { return message_.width; }

  // Of a worker on a device: where the batch lies there, once device()->ready has passed or after
  // Worker::use_on. Null on the host.
  const DeviceArrays* device() const { return device_ ? &*device_ : nullptr; }

  // The tensor, on the host; empty for a worker on a device. The model may work in place: a slab is
  // written anew for each batch.
  MutableBytes data() const { return arrays_.data; }
  // One row of it, width * values. Requires: row < rows(), and a worker on the host.
  MutableBytes row(std::uint32_t row) const {
    const std::size_t size = arrays_.data.size() / rows();
    return arrays_.data.subspan(row * size, size);
  }
  // The same as values; T is that of Worker::dtype.
  template <class T>
  std::span<T> row_as(std::uint32_t at) const {
    const MutableBytes bytes = row(at);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Control arrays of rows() + marks().size() entries, on the host.
  std::span<const std::int32_t> slot() const { return arrays_.slot; }
  std::span<const std::int32_t> left() const { return arrays_.left; }
  std::span<const std::int32_t> size() const { return arrays_.size; }
  std::span<const std::int32_t> right() const { return arrays_.right; }
  std::span<const std::uint8_t> flags() const { return arrays_.flags; }
  std::span<const std::uint8_t> reset() const { return arrays_.reset; }

  // Rows 0 <= i < framed().size() of the tensor; padding rows behind them are not listed.
  const std::vector<worker_protocol::RowEntry>& framed() const { return message_.framed; }
  // Marker rows: they have no place in the tensor.
  const std::vector<worker_protocol::RowEntry>& marks() const { return message_.marks; }
  // Streams of which this worker sees its first row here, with their names and options. A watcher
  // gets the names of all.
  const std::vector<worker_protocol::OpenedStream>& opened() const { return message_.opened; }

  // For the library: when it was taken, and what it is made of. take_reset() makes a row of the
  // tensor carry RESET; is_renewed(): that was done to one of them.
  const BatchPlace& place() const { return place_; }
  void take(Time now) { taken_ = now; }
  void take(const DeviceArrays& device) {
    device_ = device;
    arrays_.data = {};
  }
  void take_reset(std::size_t row) {
    message_.framed[row].flags |= flag::reset;
    message_.framed[row].reason = static_cast<std::uint8_t>(ResetReason::worker_lost);
    const SlabLayout layout = layout_of(place_.shape);
    place_.memory[layout.flags + row] |= std::byte{flag::reset};
    place_.memory[layout.reset + row] = std::byte{1};
    renewed_ = true;
  }
  bool is_renewed() const { return renewed_; }
  worker_protocol::HandedBatch release() {
    arrays_ = {};
    device_.reset();
    return std::exchange(message_, {});
  }

 private:
  worker_protocol::HandedBatch message_;
  BatchArrays arrays_;
  BatchPlace place_;
  std::optional<DeviceArrays> device_;
  bool renewed_ = false;
  Time taken_;
};

}  // namespace millrace
