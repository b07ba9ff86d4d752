// SPDX-License-Identifier: Apache-2.0
#include "workers/library/mapped_slabs.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "chunker/row.h"
#include "workers/library/worker.h"

namespace millrace {
namespace {

using worker_protocol::HandedBatch;
using worker_protocol::RowEntry;
using worker_protocol::Welcome;

// In bytes. Below it no computed size of a batch overflows.
constexpr std::uint64_t max_tensor = std::uint64_t{1} << 40;

template <class T>
std::span<T> array(MutableBytes slab, std::size_t offset, std::size_t entries) {
  return {reinterpret_cast<T*>(slab.data() + offset), entries};
}

BatchArrays arrays_in(MutableBytes slab, const SlabShape& shape) {
  const SlabLayout layout = layout_of(shape);
  const std::size_t entries = std::size_t{shape.rows} + shape.marks;
  const std::size_t tensor =
      std::size_t{shape.rows} * shape.width * shape.values * size_of(shape.element);
  return {.data = slab.first(tensor),
          .slot = array<const std::int32_t>(slab, layout.slots, entries),
          .left = array<const std::int32_t>(slab, layout.left, entries),
          .size = array<const std::int32_t>(slab, layout.size, entries),
          .right = array<const std::int32_t>(slab, layout.right, entries),
          .flags = array<const std::uint8_t>(slab, layout.flags, entries),
          .reset = array<const std::uint8_t>(slab, layout.reset, entries)};
}

// Writes the control arrays of an inline batch. In a slab, the service has written them.
void write_arrays(MutableBytes slab, const SlabShape& shape, const HandedBatch& batch,
                  std::uint32_t slots) {
  const SlabLayout layout = layout_of(shape);
  const std::size_t entries = std::size_t{shape.rows} + shape.marks;
  const auto slot = array<std::int32_t>(slab, layout.slots, entries);
  const auto left = array<std::int32_t>(slab, layout.left, entries);
  const auto size = array<std::int32_t>(slab, layout.size, entries);
  const auto right = array<std::int32_t>(slab, layout.right, entries);
  const auto flags = array<std::uint8_t>(slab, layout.flags, entries);
  const auto reset = array<std::uint8_t>(slab, layout.reset, entries);
  const auto write = [&](std::size_t i, const RowEntry& row) {
    slot[i] = static_cast<std::int32_t>(row.slot);
    left[i] = static_cast<std::int32_t>(row.left);
    size[i] = static_cast<std::int32_t>(row.size);
    right[i] = static_cast<std::int32_t>(row.right);
    flags[i] = row.flags;
    reset[i] = (row.flags & flag::reset) != 0;
  };
  const RowEntry padding{.slot = slots};
  for (std::size_t i = 0; i < shape.rows; ++i)
    write(i, i < batch.framed.size() ? batch.framed[i] : padding);
  for (std::size_t i = 0; i < shape.marks; ++i) write(shape.rows + i, batch.marks[i]);
}

}  // namespace

MappedSlabs::MappedSlabs(const Welcome& welcome, const FileDescriptor& descriptor)
    : slots_(welcome.slots),
      rows_(welcome.rows),
      slab_count_(welcome.slabs),
      width_buckets_(welcome.width_buckets),
      columns_{welcome.context},
      slab_bytes_(welcome.slab_bytes),
      frames_(welcome.frames),
      element_(welcome.slab_element.value_or(welcome.frames.element)) {
  const std::uint64_t columns = std::uint64_t{rows_} * welcome.width;
  if (columns > max_tensor / frames_.bytes())
    throw WorkerError("the service's batches are too large");
  if (slab_count_ == 0) return;
  if (!descriptor || slab_bytes_ == 0 || slab_bytes_ % slab_alignment != 0)
    throw WorkerError("the service announced slabs, but sent no usable memory for them");
  try {
    shared_ = SharedMemory::map(descriptor.get(), slab_count_ * slab_bytes_);
  } catch (const std::system_error& error) {
    throw WorkerError(std::string("the service's slabs: ") + error.what());
  }
}

bool MappedSlabs::is_valid(const HandedBatch& batch) const {
  const auto in_slots = [this](const auto& entry) { return entry.slot < slots_; };
  const auto in_width = [&](const RowEntry& row) {
    return columns_.needed(row.left, row.size, row.right) <= batch.width;
  };
  return batch.rows <= rows_ && batch.marks.size() <= slots_ &&
         std::ranges::binary_search(width_buckets_, batch.width) &&
         std::ranges::all_of(batch.framed, in_width) &&
         std::ranges::all_of(batch.framed, in_slots) &&
         std::ranges::all_of(batch.marks, in_slots) && std::ranges::all_of(batch.opened, in_slots);
}

std::optional<WorkerBatch> MappedSlabs::make_batch(HandedBatch batch) {
  if (!is_valid(batch)) return std::nullopt;
  SlabRef slab{.index = batch.slab,
               .memory = {},
               .shape = {.rows = batch.rows,
                         .marks = static_cast<std::uint32_t>(batch.marks.size()),
                         .width = batch.width,
                         .values = frames_.values,
                         .element = element_}};
  const SlabLayout layout = layout_of(slab.shape);
  if (shared_) {
    if (batch.slab >= slab_count_ || layout.bytes > slab_bytes_ || !batch.tensor.empty())
      return std::nullopt;
    slab.memory = shared_->bytes().subspan(batch.slab * slab_bytes_, slab_bytes_);
  } else {
    if (batch.tensor.size() != std::size_t{batch.rows} * batch.width * frames_.bytes())
      return std::nullopt;
    slab.index = inline_slab(layout.bytes);
    slab.memory = {inline_slabs_[slab.index].memory.get(), inline_slabs_[slab.index].size};
    if (!batch.tensor.empty())
      std::memcpy(slab.memory.data(), batch.tensor.data(), batch.tensor.size());
    batch.tensor = {};
    write_arrays(slab.memory, slab.shape, batch, slots_);
  }
  return WorkerBatch(std::move(batch), arrays_in(slab.memory, slab.shape), slab);
}

std::uint32_t MappedSlabs::inline_slab(std::size_t bytes) {
  auto free = std::ranges::find(inline_slabs_, false, &InlineSlab::used);
  if (free == inline_slabs_.end()) free = inline_slabs_.insert(inline_slabs_.end(), InlineSlab{});
  if (free->size < bytes) {
    free->memory.reset(
        static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{slab_alignment})));
    free->size = bytes;
  }
  free->used = true;
  return static_cast<std::uint32_t>(free - inline_slabs_.begin());
}

void MappedSlabs::release(const SlabRef& slab) {
  if (!shared_) inline_slabs_[slab.index].used = false;
}

}  // namespace millrace
