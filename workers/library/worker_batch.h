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

// A batch in memory: the tensor [rows, width, values], contiguous and aligned to 256 bytes, and the
// control arrays, with the entries of the tensor's rows first and those of the marker rows after
// them. A padding row has size 0 and slot = slots.
struct BatchArrays {
  MutableBytes data;
  std::span<const std::int32_t> slot, left, size, right;
  std::span<const std::uint8_t> flags;  // flag:: of chunker/row.h
  std::span<const std::uint8_t> reset;  // 1 where flags has RESET
  // For a plan: an array [rows, entries, values] per companion (base/companion.h), unused entries
  // 0.
  std::vector<MutableBytes> companions = {};
};

// The slab that holds a batch. Used by the library only.
struct SlabRef {
  std::uint32_t index = 0;
  MutableBytes memory;  // all of the slab
  SlabShape shape;
};

// A batch that a worker has taken and not yet returned. Its arrays are in memory of its Worker,
// which must outlive it, and are invalid after Worker::done(). Confined to one thread.
class WorkerBatch {
 public:
  WorkerBatch(worker_protocol::HandedBatch message, const BatchArrays& arrays,
              const SlabRef& slab = {})
      : message_(std::move(message)), arrays_(arrays), slab_(slab) {}

  BatchId id() const { return message_.id; }
  Trigger trigger() const { return static_cast<Trigger>(message_.trigger); }
  // When the service closed the batch, and when this worker took it. `closed` of a service on
  // another machine is on that machine's clock.
  Time closed() const { return message_.closed; }
  Time taken() const { return taken_; }

  // Rows of the tensor, padding rows included, and columns of a row. 0 rows: the batch has only
  // marker rows, so do not run the model.
  std::uint32_t rows() const { return message_.rows; }
  std::uint32_t width() const { return message_.width; }

  // The tensor and the control arrays on the device; null for a worker on the host. They can be
  // read on streams that were passed to Worker::use_on(), and after the event device()->ready.
  const DeviceArrays* device() const { return device_ ? &*device_ : nullptr; }

  // The tensor on the host; empty for a worker on a device. The model may overwrite it: the memory
  // is written again for each batch.
  MutableBytes data() const { return arrays_.data; }
  // One row of the tensor: width * values elements. Requires: row < rows(), and a worker on the
  // host.
  MutableBytes row(std::uint32_t row) const {
    const std::size_t size = arrays_.data.size() / rows();
    return arrays_.data.subspan(row * size, size);
  }
  // The same as elements of type T, which must be the type of Worker::dtype().
  template <class T>
  std::span<T> row_as(std::uint32_t at) const {
    const MutableBytes bytes = row(at);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // The control arrays on the host, each with rows() + marks().size() entries.
  std::span<const std::int32_t> slot() const { return arrays_.slot; }
  std::span<const std::int32_t> left() const { return arrays_.left; }
  std::span<const std::int32_t> size() const { return arrays_.size; }
  std::span<const std::int32_t> right() const { return arrays_.right; }
  std::span<const std::uint8_t> flags() const { return arrays_.flags; }
  std::span<const std::uint8_t> reset() const { return arrays_.reset; }

  // For a plan: its position, and a companion's array on the host.
  std::uint64_t epoch() const { return message_.epoch; }
  std::uint64_t step() const { return message_.step; }
  std::uint64_t steps() const { return message_.steps; }  // in the epoch
  std::uint32_t body() const { return message_.body; }
  std::span<const MutableBytes> companions() const { return arrays_.companions; }
  // Streams whose rows are padding rows from this batch on, because they cannot be delivered: a
  // JSON array (worker_protocol::HandedBatch::failed), or empty.
  const std::string& failed() const { return message_.failed; }

  // The rows with frames: row i of the tensor is framed()[i]. The padding rows after them are not
  // listed.
  const std::vector<worker_protocol::RowEntry>& framed() const { return message_.framed; }
  // The marker rows, which are not in the tensor.
  const std::vector<worker_protocol::RowEntry>& marks() const { return message_.marks; }
  // The streams whose first row at this worker is in this batch, with their names and options. For
  // a watcher: all streams of the batch, those that it may have seen before without options.
  const std::vector<worker_protocol::OpenedStream>& opened() const { return message_.opened; }
  // The messages of clients that the rows of the batch carry, those of a stream in the order in
  // which its client sent them. They belong before the row of their stream.
  const std::vector<worker_protocol::Post>& messages() const { return message_.posts; }

  // The rest is used by the library only. set_reset() adds RESET to a row of the tensor, in the
  // message and in the slab; has_added_reset() is true after that. release() returns the message
  // and invalidates the batch.
  const SlabRef& slab() const { return slab_; }
  void set_taken(Time now) { taken_ = now; }
  void set_device(const DeviceArrays& device) {
    device_ = device;
    arrays_.data = {};
  }
  void set_reset(std::size_t row) {
    message_.framed[row].flags |= flag::reset;
    message_.framed[row].reason = static_cast<std::uint8_t>(ResetReason::worker_lost);
    const SlabLayout layout = layout_of(slab_.shape);
    slab_.memory[layout.flags + row] |= std::byte{flag::reset};
    slab_.memory[layout.reset + row] = std::byte{1};
    reset_added_ = true;
  }
  bool has_added_reset() const { return reset_added_; }
  worker_protocol::HandedBatch release() {
    arrays_ = {};
    device_.reset();
    return std::exchange(message_, {});
  }

 private:
  worker_protocol::HandedBatch message_;
  BatchArrays arrays_;
  SlabRef slab_;
  std::optional<DeviceArrays> device_;
  bool reset_added_ = false;
  Time taken_;
};

}  // namespace millrace
