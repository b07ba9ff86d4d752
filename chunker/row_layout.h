// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chunker/row.h"
#include "chunker/spec.h"

namespace millrace {

// The columns of a row: `lead` columns, the window, `trail` columns. The window is contiguous. The
// columns around it are zero, or with Pad::repeat its first frame before it and its last after it.
struct RowLayout {
  std::uint32_t lead = 0;
  std::uint32_t window = 0;
  std::uint32_t trail = 0;
  bool operator==(const RowLayout&) const = default;
};

// Requires: the row has frames, was cut by rule.spec, and fits: lead + window <= width. Every width
// of width_for(rule.spec, …) is enough.
RowLayout row_layout(const Row& row, const ChunkRule& rule, std::uint32_t width);

// The columns of a row if size events give bodies of at most `size` frames: the widest window.
std::uint32_t width_for(const Spec& spec, std::uint32_t size);

// The default widths of batches: that of each of the rule's sizes. A range may have any number of
// sizes: only the widest.
std::vector<std::uint32_t> default_widths(const ChunkRule& rule);

// The length to which an axis of a batch is padded if it needs `least` rows or columns: the
// smallest of `buckets`, which ascend, that is at least that. Without buckets it is `least`.
// Requires: the last bucket is at least `least`.
std::uint32_t padded_length(std::span<const std::uint32_t> buckets, std::uint32_t least);

}  // namespace millrace
