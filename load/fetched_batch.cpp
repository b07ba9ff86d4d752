// SPDX-License-Identifier: Apache-2.0
#include "load/fetched_batch.h"

#include <cstring>

#include "chunker/row.h"

namespace millrace::load {

namespace {

// The control arrays are one block, from `slot` to the end of `reset` (slab_layout.h).
const std::byte* begin_of_controls(const DeviceArrays& arrays) {
  return reinterpret_cast<const std::byte*>(arrays.slot);
}

}  // namespace

FetchedBatch::FetchedBatch(const Worker& worker)
    : column_bytes_(worker.frames().bytes()),
      padding_slot_(worker.slots()),
      fetcher_(cuda::make_fetcher(worker.ordinal())) {}

void FetchedBatch::fetch(Worker& worker, const WorkerBatch& batch) {
  const DeviceArrays& arrays = *batch.device();
  const std::size_t entries = batch.rows() + batch.marks().size();
  const auto* const end = reinterpret_cast<const std::byte*>(arrays.reset) + entries;
  row_bytes_ = batch.width() * column_bytes_;
  tensor_.resize(batch.rows() * row_bytes_);
  controls_.resize(static_cast<std::size_t>(end - begin_of_controls(arrays)));
  worker.use_on(batch, fetcher_->stream());
  fetcher_->start(arrays.tensor, tensor_);
  fetcher_->start(arrays.slot, controls_);
  fetcher_->wait();

  const auto& framed = batch.framed();
  intact_.resize(framed.size());
  for (std::size_t i = 0; i < framed.size(); ++i) intact_[i] = has(batch, i, framed[i]);
  damaged_ = 0;
  for (std::size_t i = framed.size(); i < batch.rows(); ++i)
    damaged_ += !has(batch, i, {.slot = padding_slot_});
  for (std::size_t i = 0; i < batch.marks().size(); ++i)
    damaged_ += !has(batch, batch.rows() + i, batch.marks()[i]);
}

Bytes FetchedBatch::row(std::uint32_t row) const {
  if (!intact_[row]) return {};
  return Bytes(tensor_).subspan(row * row_bytes_, row_bytes_);
}

bool FetchedBatch::has(const WorkerBatch& batch, std::size_t entry,
                       const worker_protocol::RowEntry& expected) const {
  const DeviceArrays& arrays = *batch.device();
  const auto is = [&]<class T>(const T* array, std::uint32_t value) {
    const auto wanted = static_cast<T>(value);
    const auto offset = reinterpret_cast<const std::byte*>(array) - begin_of_controls(arrays);
    return std::memcmp(controls_.data() + offset + entry * sizeof(T), &wanted, sizeof(T)) == 0;
  };
  return is(arrays.slot, expected.slot) && is(arrays.left, expected.left) &&
         is(arrays.size, expected.size) && is(arrays.right, expected.right) &&
         is(arrays.flags, expected.flags) &&
         is(arrays.reset, (expected.flags & flag::reset) != 0 ? 1 : 0);
}

}  // namespace millrace::load
