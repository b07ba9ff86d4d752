// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "gpu/host/convert.h"
#include "gpu/host/row_format.h"

namespace millrace {

// Writes rows of the tensor on the host: converts the frames, and fills the columns around them.
//
// Immutable after construction.
class RowWriter {
 public:
  // Requires: there is a conversion from format.frames to format.dtype (convert.h).
  explicit RowWriter(const RowFormat& format);

  // Writes one row of the tensor, `row`: all of its columns, or in the bare format those of the
  // window. `window` is the frames in one piece or two; `left` frames of it precede the body. A
  // piece may end inside a frame, not inside a value.
  // Requires: the window has at least one frame; format.lead(left) and the window fit into `row`.
  void write(MutableBytes row, const std::array<Bytes, 2>& window, std::uint32_t left) const;

  const RowFormat& format() const { return format_; }
  // Bytes of one column of the tensor.
  std::size_t column_bytes() const { return column_bytes_; }

 private:
  RowFormat format_;
  Convert convert_;
  std::size_t column_bytes_;
};

}  // namespace millrace
