// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "gpu/host/row_format.h"

namespace millrace {

// Where a row's window stands in a slab of bare rows.
struct RowWindow {
  std::uint32_t left = 0, size = 0, right = 0;
};

// What a device makes of a slab of bare rows, made on the host: the tensor [rows, width, values] of
// format.dtype. `slab` holds the rows as format.frames; rows beyond `windows` are padding, and
// become zeros. Requires: `tensor` is of that size; there is a conversion.
void expand_rows(const RowFormat& format, Bytes slab, std::span<const RowWindow> windows,
                 std::uint32_t width, MutableBytes tensor);

}  // namespace millrace
