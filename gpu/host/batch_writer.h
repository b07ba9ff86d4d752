// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "gpu/host/row_writer.h"
#include "gpu/host/slab_layout.h"

namespace millrace {

// A row's entry in the control arrays.
struct RowControl {
  std::uint32_t slot = 0;
  std::uint32_t left = 0, size = 0, right = 0;
  std::uint8_t flags = 0;
  bool reset = false;  // flags has RESET
};

// Lays a batch into a slab, row by row: the tensor and the control arrays (slab_layout.h).
//
//   writer.begin(slab, rows, marks, width);
//   for each row with frames: writer.add(control, window);
//   for each marker row:      writer.add_mark(control);
//   const SlabShape shape = writer.finish();
//
// Confined to one thread. Allocates nothing.
class BatchWriter {
 public:
  // Padding rows get slot `slots`, the spare place.
  BatchWriter(const RowFormat& format, std::uint32_t slots) : rows_(format), slots_(slots) {}

  // The slab is kept until finish(). `rows` are those of the tensor, padding rows included.
  // Requires: the slab is aligned to slab_alignment and holds the layout of this shape.
  void begin(MutableBytes slab, std::uint32_t rows, std::uint32_t marks, std::uint32_t width);

  // Requires: fewer than `rows` before it.
  void add(const RowControl& row, const std::array<Bytes, 2>& window);
  // Requires: fewer than `marks` before it.
  void add_mark(const RowControl& row);

  // Makes the rows that were not added padding rows: size 0, and zeros unless the format is bare.
  // Requires: all marker rows were added.
  SlabShape finish();

 private:
  void control(std::size_t entry, const RowControl& row);

  RowWriter rows_;
  std::uint32_t slots_;
  MutableBytes slab_;
  SlabShape shape_;
  SlabLayout layout_;
  std::size_t row_bytes_ = 0;
  std::uint32_t added_ = 0, marked_ = 0;
};

}  // namespace millrace
