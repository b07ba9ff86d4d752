// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/companion.h"
#include "gpu/host/slab_layout.h"

namespace millrace {

// The offsets of the companion arrays [rows, entries, values] behind SlabLayout::companions, or
// behind an inline tensor that was padded to slab_alignment. Each is aligned to slab_alignment.
struct CompanionLayout {
  std::vector<std::size_t> offsets;  // by companion
  std::vector<std::size_t> sizes;    // bytes, by companion
  std::size_t bytes = 0;             // all together, for SlabShape::companions
};

// `body`: the most frames of a body.
inline CompanionLayout layout_of(std::span<const CompanionFormat> companions, std::uint32_t rows,
                                 std::uint32_t body) {
  CompanionLayout layout;
  for (const CompanionFormat& companion : companions) {
    layout.offsets.push_back(layout.bytes);
    layout.sizes.push_back(rows * companion.most_entries(body) * companion.entry_bytes());
    layout.bytes += (layout.sizes.back() + slab_alignment - 1) / slab_alignment * slab_alignment;
  }
  return layout;
}

}  // namespace millrace
