// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "gpu/host/row_writer.h"
#include "gpu/host/slab_layout.h"

namespace millrace {

// The entry of one row in the control arrays (slab_layout.h). Lengths are in frames.
struct RowControl {
  std::uint32_t slot = 0;
  std::uint32_t left = 0, size = 0, right = 0;
  std::uint8_t flags = 0;
  bool reset = false;  // flags has RESET
};

// Writes batches into slabs, row by row: the tensor and the control arrays (slab_layout.h).
//
//   writer.begin(slab, rows, marks, width);
//   for each row with frames: writer.add(control, window);
//   for each marker row:      writer.add_mark(control);
//   const SlabShape shape = writer.finish();
//
// Confined to one thread, except put() and put_mark(): several threads may call
// these for different rows, between begin() and finish(n). Allocates nothing and does not throw.
class BatchWriter {
 public:
  // `format` is that of the slabs, from Device::slab_format(). Padding rows get the slot number
  // `slots`: the spare row behind the state of the slots.
  // Requires: there is a conversion from format.frames to format.dtype (convert.h).
  BatchWriter(const RowFormat& format, std::uint32_t slots) : rows_(format), slots_(slots) {}

  // Begins a batch in `slab`, which must stay valid until finish(). `rows` are those of the tensor,
  // padding rows included; `marks` are marker rows; `width` is the number of columns; `companions`
  // are the bytes behind the control arrays, which the caller writes.
  // Requires: `slab` is aligned to slab_alignment and as long as the layout of this shape.
  void begin(MutableBytes slab, std::uint32_t rows, std::uint32_t marks, std::uint32_t width,
             std::size_t companions = 0);

  // Writes the next row with frames. `window` is its window, in one piece or two, as in
  // RowWriter::write(). Requires: fewer than `rows` rows were added.
  void add(const RowControl& row, const std::array<Bytes, 2>& window) {
    put(added_++, row, window);
  }
  // Writes the next marker row. Requires: fewer than `marks` marker rows were added.
  void add_mark(const RowControl& row) { put_mark(marked_++, row); }

  // The same for row number `at` of the rows with frames, and of the marker rows.
  void put(std::uint32_t at, const RowControl& row, const std::array<Bytes, 2>& window) const;
  void put_mark(std::uint32_t at, const RowControl& row) const;
  // Leaves rows with frames out, after put() of the others: the tensor's row `from` becomes row
  // `to`. After these, relayout() gives the batch another number of marker rows, and control()
  // writes the controls again, as put_mark() does. The companions must be written again, too.
  void move(std::uint32_t from, std::uint32_t to) const;
  void relayout(std::uint32_t marks);
  // The entry of row number `at` in the control arrays; put() writes it, too.
  void control(std::size_t at, const RowControl& row) const;
  // The memory of the companions.
  MutableBytes companions() const { return slab_.subspan(layout_.companions, shape_.companions); }

  // Ends the batch. The rows that were not added become padding rows: size 0, and all zeros unless
  // the format is bare. Returns the shape, for DeviceSlabs::copy() and DeviceReader::take().
  // Requires: all marker rows were added.
  SlabShape finish();
  // The same after put() of the rows 0 ... framed - 1 and put_mark() of all marker rows.
  SlabShape finish(std::uint32_t framed);

 private:
  RowWriter rows_;
  std::uint32_t slots_;
  MutableBytes slab_;
  SlabShape shape_;
  SlabLayout layout_;
  std::size_t row_bytes_ = 0;
  std::uint32_t added_ = 0, marked_ = 0;  // rows, marker rows
};

}  // namespace millrace
