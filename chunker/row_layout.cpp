// SPDX-License-Identifier: Apache-2.0
#include "chunker/row_layout.h"

#include <algorithm>
#include <cassert>

namespace millrace {

RowLayout row_layout(const Row& row, const ChunkRule& rule, std::uint32_t width) {
  RowLayout layout{.lead = rule.columns().lead(row.left), .window = row.window()};
  assert(row.has_frames() && layout.lead + layout.window <= width);
  layout.trail = width - layout.lead - layout.window;
  return layout;
}

std::uint32_t width_for(const Spec& spec, std::uint32_t size) {
  return spec.left + std::max({spec.first, spec.size, size}) + spec.right;
}

}  // namespace millrace
