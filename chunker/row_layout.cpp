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
  return std::max(spec.width(), spec.left + size + spec.right);
}

std::vector<std::uint32_t> default_widths(const ChunkRule& rule) {
  const SizeList& sizes = rule.sizes.sizes;
  if (sizes.empty() || sizes.is_range()) return {rule.width()};
  std::vector<std::uint32_t> widths;
  for (std::size_t i = 0; i < sizes.size(); ++i) widths.push_back(rule.width_of(sizes[i]));
  return widths;
}

std::uint32_t padded_length(std::span<const std::uint32_t> buckets, std::uint32_t least) {
  if (buckets.empty()) return least;
  assert(least <= buckets.back());
  return *std::ranges::lower_bound(buckets, least);
}

}  // namespace millrace
