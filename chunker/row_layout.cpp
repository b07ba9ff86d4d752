// SPDX-License-Identifier: Apache-2.0
#include "chunker/row_layout.h"

#include <algorithm>
#include <cassert>

namespace millrace {

RowLayout row_layout(const Row& row, const ChunkRule& rule, std::uint32_t width) {
  const RowColumns columns = rule.columns();
  const std::uint32_t needed = columns.needed(row.left, row.size, row.right);
  assert(row.has_frames() && needed <= width);
  const RowLayout layout{
      .lead = columns.lead(row.left), .window = row.window(), .trail = width - needed};
  return layout;
}

std::uint32_t width_for(const Spec& spec, std::uint32_t size) {
  return spec.left + std::max({spec.first, spec.size, size}) + spec.right;
}

}  // namespace millrace
