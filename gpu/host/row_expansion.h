// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "gpu/host/row_format.h"

namespace millrace {

// The window of a row in a slab of bare rows, in frames.
struct RowWindow {
  std::uint32_t left = 0, size = 0, right = 0;
};

// Makes the tensor [rows, width, values] of format.dtype from a slab of bare rows, on the host, as
// cuda::expand() does on a device. `slab` holds the rows as format.frames. Rows beyond `windows`
// are padding rows and become zeros. `rows` follows from the size of `tensor`.
// Requires: `tensor` has whole rows, at least as many as `windows`; there is a conversion.
void expand_rows(const RowFormat& format, Bytes slab, std::span<const RowWindow> windows,
                 std::uint32_t width, MutableBytes tensor);

}  // namespace millrace
