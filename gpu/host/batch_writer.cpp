// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/batch_writer.h"

#include <cassert>
#include <cstring>

namespace millrace {

void BatchWriter::begin(MutableBytes slab, std::uint32_t rows, std::uint32_t marks,
                        std::uint32_t width, std::size_t companions) {
  const RowFormat& format = rows_.format();
  slab_ = slab;
  shape_ = {rows, marks, width, format.values, format.dtype, companions};
  layout_ = layout_of(shape_);
  row_bytes_ = width * rows_.column_bytes();
  added_ = marked_ = 0;
  assert(reinterpret_cast<std::uintptr_t>(slab.data()) % slab_alignment == 0);
  assert(layout_.bytes <= slab.size());
}

void BatchWriter::put(std::uint32_t at, const RowControl& row,
                      const std::array<Bytes, 2>& window) const {
  assert(at < shape_.rows);
  rows_.write(slab_.subspan(at * row_bytes_, row_bytes_), window, row.left);
  control(at, row);
}

void BatchWriter::put_mark(std::uint32_t at, const RowControl& row) const {
  assert(at < shape_.marks);
  control(std::size_t{shape_.rows} + at, row);
}

void BatchWriter::move(std::uint32_t from, std::uint32_t to) const {
  if (from != to)
    std::memcpy(slab_.data() + to * row_bytes_, slab_.data() + from * row_bytes_, row_bytes_);
}

void BatchWriter::relayout(std::uint32_t marks) {
  shape_.marks = marks;
  layout_ = layout_of(shape_);
}

SlabShape BatchWriter::finish() {
  assert(marked_ == shape_.marks);
  return finish(added_);
}

SlabShape BatchWriter::finish(std::uint32_t framed) {
  const std::size_t padding = rows_.format().bare ? 0 : shape_.rows - framed;
  if (padding > 0) std::memset(slab_.data() + framed * row_bytes_, 0, padding * row_bytes_);
  for (std::uint32_t at = framed; at < shape_.rows; ++at) control(at, {.slot = slots_});
  return shape_;
}

void BatchWriter::control(std::size_t entry, const RowControl& row) const {
  const auto put = [&](std::size_t array, std::uint32_t value) {
    std::memcpy(slab_.data() + array + 4 * entry, &value, 4);
  };
  put(layout_.slots, row.slot);
  put(layout_.left, row.left);
  put(layout_.size, row.size);
  put(layout_.right, row.right);
  slab_[layout_.flags + entry] = std::byte{row.flags};
  slab_[layout_.reset + entry] = std::byte{row.reset};
}

}  // namespace millrace
