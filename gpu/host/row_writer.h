// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "gpu/host/convert.h"
#include "gpu/host/row_format.h"

namespace millrace {

// Writes rows of the tensor on the host: a row's frames, converted, and the columns around them.
//
// Immutable after construction.
class RowWriter {
 public:
  // Requires: there is a conversion from format.frames to format.dtype.
  explicit RowWriter(const RowFormat& format);

  // `row` is one row of the tensor: all of its columns are written, or in the bare format those of
  // the window. `window` has whole values and
  // at least one frame, `left` frames of which stand before the body.
  // Requires: lead and window fit into the row.
  void write(MutableBytes row, const std::array<Bytes, 2>& window, std::uint32_t left) const;

  const RowFormat& format() const { return format_; }
  std::size_t column_bytes() const { return column_bytes_; }

 private:
  RowFormat format_;
  Convert convert_;
  std::size_t column_bytes_;  // of a frame in the tensor
};

}  // namespace millrace
