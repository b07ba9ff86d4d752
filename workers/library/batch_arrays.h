// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/companion.h"
#include "gpu/host/companion_layout.h"
#include "gpu/host/slab_layout.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// An array of `entries` values at `offset` of a slab.
template <class T>
std::span<T> array_in(MutableBytes slab, std::size_t offset, std::size_t entries) {
  return {reinterpret_cast<T*>(slab.data() + offset), entries};
}

// The tensor and the control arrays of a batch in a slab, or in memory with the layout of a slab.
inline BatchArrays arrays_in(MutableBytes slab, const SlabShape& shape) {
  const SlabLayout layout = layout_of(shape);
  const std::size_t entries = std::size_t{shape.rows} + shape.marks;
  const std::size_t tensor =
      std::size_t{shape.rows} * shape.width * shape.values * size_of(shape.element);
  return {.data = slab.first(tensor),
          .slot = array_in<const std::int32_t>(slab, layout.slots, entries),
          .left = array_in<const std::int32_t>(slab, layout.left, entries),
          .size = array_in<const std::int32_t>(slab, layout.size, entries),
          .right = array_in<const std::int32_t>(slab, layout.right, entries),
          .flags = array_in<const std::uint8_t>(slab, layout.flags, entries),
          .reset = array_in<const std::uint8_t>(slab, layout.reset, entries)};
}

// The same with the companions. `body`: the most frames of a body.
inline BatchArrays arrays_in(MutableBytes slab, const SlabShape& shape,
                             std::span<const CompanionFormat> companions, std::uint32_t body) {
  BatchArrays arrays = arrays_in(slab, shape);
  if (companions.empty()) return arrays;
  const MutableBytes all = slab.subspan(layout_of(shape).companions, shape.companions);
  const CompanionLayout layout = layout_of(companions, shape.rows, body);
  for (std::size_t i = 0; i < companions.size(); ++i)
    arrays.companions.push_back(all.subspan(layout.offsets[i], layout.sizes[i]));
  return arrays;
}

}  // namespace millrace
