// SPDX-License-Identifier: Apache-2.0
#include "workers/library/mapped_slabs.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "chunker/row.h"
#include "workers/library/batch_arrays.h"
#include "workers/library/worker.h"
#include "workers/plan/plan_text.h"

namespace millrace {
namespace {

using worker_protocol::HandedBatch;
using worker_protocol::RowEntry;
using worker_protocol::Welcome;

// In bytes. Below it no computed size of a batch overflows.
constexpr std::uint64_t max_tensor = std::uint64_t{1} << 40;

// Writes the control arrays of an inline batch. In a slab, the service has written them.
void write_arrays(MutableBytes slab, const SlabShape& shape, const HandedBatch& batch,
                  std::uint32_t padding_slot) {
  const SlabLayout layout = layout_of(shape);
  const std::size_t entries = std::size_t{shape.rows} + shape.marks;
  const auto slot = array_in<std::int32_t>(slab, layout.slots, entries);
  const auto left = array_in<std::int32_t>(slab, layout.left, entries);
  const auto size = array_in<std::int32_t>(slab, layout.size, entries);
  const auto right = array_in<std::int32_t>(slab, layout.right, entries);
  const auto flags = array_in<std::uint8_t>(slab, layout.flags, entries);
  const auto reset = array_in<std::uint8_t>(slab, layout.reset, entries);
  const auto write = [&](std::size_t i, const RowEntry& row) {
    slot[i] = static_cast<std::int32_t>(row.slot);
    left[i] = static_cast<std::int32_t>(row.left);
    size[i] = static_cast<std::int32_t>(row.size);
    right[i] = static_cast<std::int32_t>(row.right);
    flags[i] = row.flags;
    reset[i] = (row.flags & flag::reset) != 0;
  };
  const RowEntry padding{.slot = padding_slot};
  for (std::size_t i = 0; i < shape.rows; ++i)
    write(i, i < batch.framed.size() ? batch.framed[i] : padding);
  for (std::size_t i = 0; i < shape.marks; ++i) write(shape.rows + i, batch.marks[i]);
}

std::optional<PlanText> plan_of(const Welcome& welcome) {
  if (welcome.plan.empty()) return std::nullopt;
  auto plan = read_plan(welcome.plan);
  // Without state, the slots of Welcome are the numbers of rows.
  if (!plan || (plan->slots > 0 && plan->slots != welcome.slots))
    throw WorkerError("the server sent an invalid plan");
  return plan;
}

std::size_t tensor_bytes(const SlabShape& shape) {
  return std::size_t{shape.rows} * shape.width * shape.values * size_of(shape.element);
}

// The companions follow the tensor, which is padded then.
void copy_inline(const HandedBatch& batch, const SlabRef& slab, const SlabLayout& layout) {
  const std::size_t tensor = tensor_bytes(slab.shape);
  if (tensor > 0) std::memcpy(slab.memory.data(), batch.tensor.data(), tensor);
  const Bytes companions = batch.tensor.last(slab.shape.companions);
  if (!companions.empty())
    std::memcpy(slab.memory.data() + layout.companions, companions.data(), companions.size());
}

std::size_t padded(std::size_t bytes) {
  return (bytes + slab_alignment - 1) / slab_alignment * slab_alignment;
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
      plan_(plan_of(welcome)),
      element_(welcome.slab_element.value_or(welcome.frames.element)) {
  const std::uint64_t columns = std::uint64_t{rows_} * welcome.width;
  if (columns > max_tensor / frames_.bytes())
    throw WorkerError("the service's batches are too large");
  for (const CompanionFormat& companion : companions())
    if (columns > max_tensor / (companion.entry_bytes() * companion.entries_per_frame))
      throw WorkerError("the companion " + companion.name + " is too large");
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
  return batch.rows <= rows_ && (batch.steps > 0) == plan_.has_value() &&
         (plan_ ? batch.width <= width_buckets_.back()
                : batch.marks.size() <= slots_ &&
                      std::ranges::binary_search(width_buckets_, batch.width)) &&
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
                         .element = element_,
                         .companions = layout_of(companions(), batch.rows, batch.body).bytes}};
  const SlabLayout layout = layout_of(slab.shape);
  if (shared_) {
    if (batch.slab >= slab_count_ || layout.bytes > slab_bytes_ || !batch.tensor.empty())
      return std::nullopt;
    slab.memory = shared_->bytes().subspan(batch.slab * slab_bytes_, slab_bytes_);
  } else {
    if (!has_inline_size(batch, slab.shape)) return std::nullopt;
    slab.index = inline_slab(layout.bytes);
    slab.memory = {inline_slabs_[slab.index].memory.get(), inline_slabs_[slab.index].size};
    copy_inline(batch, slab, layout);
    batch.tensor = {};
    write_arrays(slab.memory, slab.shape, batch, plan_ ? plan_->slots : slots_);
  }
  const BatchArrays arrays = arrays_in(slab.memory, slab.shape, companions(), batch.body);
  return WorkerBatch(std::move(batch), arrays, slab);
}

bool MappedSlabs::has_inline_size(const HandedBatch& batch, const SlabShape& shape) const {
  const std::size_t tensor = tensor_bytes(shape);
  return batch.tensor.size() == (shape.companions > 0 ? padded(tensor) + shape.companions : tensor);
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
