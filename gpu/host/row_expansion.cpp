// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/row_expansion.h"

#include <algorithm>

#include "gpu/host/row_writer.h"

namespace millrace {

void expand_rows(const RowFormat& format, Bytes slab, std::span<const RowWindow> windows,
                 std::uint32_t width, MutableBytes tensor) {
  const RowWriter writer(format);
  const std::size_t frame = size_of(format.frames) * format.values;
  const std::size_t row_bytes = width * writer.column_bytes();
  for (std::size_t row = 0; row < windows.size(); ++row) {
    const RowWindow& window = windows[row];
    const std::size_t begin = row * width + format.lead(window.left);
    const std::size_t frames = std::size_t{window.left} + window.size + window.right;
    writer.write(tensor.subspan(row * row_bytes, row_bytes),
                 {slab.subspan(begin * frame, frames * frame)}, window.left);
  }
  std::ranges::fill(tensor.subspan(windows.size() * row_bytes), std::byte{0});
}

}  // namespace millrace
