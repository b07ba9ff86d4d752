// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/frame_type.h"

namespace millrace {

// The shape of one batch in a slab.
struct SlabShape {
  std::uint32_t rows = 0;          // rows of the tensor, padding rows included
  std::uint32_t marks = 0;         // marker rows: they follow the rows in the control arrays
  std::uint32_t width = 0;         // columns
  std::uint32_t values = 1;        // per frame: channels or dim
  Element element = Element::s16;  // type of the tensor's values in the slab
  std::size_t companions = 0;      // bytes behind the control arrays (companion_layout.h)
};

// The offsets of a batch's parts in its slab, in bytes. The tensor [rows, width, values] begins at
// 0 and is contiguous. The control arrays of rows + marks entries each follow, aligned to
// slab_alignment: slots, left, size and right are int32; flags and reset are uint8, and reset is 1
// if flags has RESET. The companions follow, aligned to slab_alignment. One copy of `bytes` bytes
// moves all of it.
//
// The service and the workers compute it from the shape: a part of the worker protocol.
struct SlabLayout {
  std::size_t slots = 0, left = 0, size = 0, right = 0, flags = 0, reset = 0;
  std::size_t companions = 0;
  std::size_t bytes = 0;  // size of the whole batch, a multiple of slab_alignment
};

inline constexpr std::size_t slab_alignment = 256;  // bytes

constexpr SlabLayout layout_of(const SlabShape& shape) {
  const auto align = [](std::size_t n) {
    return (n + slab_alignment - 1) / slab_alignment * slab_alignment;
  };
  const std::size_t entries = std::size_t{shape.rows} + shape.marks;
  SlabLayout layout;
  layout.slots =
      align(std::size_t{shape.rows} * shape.width * shape.values * size_of(shape.element));
  layout.left = align(layout.slots + 4 * entries);
  layout.size = align(layout.left + 4 * entries);
  layout.right = align(layout.size + 4 * entries);
  layout.flags = align(layout.right + 4 * entries);
  layout.reset = align(layout.flags + entries);
  layout.companions = align(layout.reset + entries);
  layout.bytes = align(layout.companions + shape.companions);
  return layout;
}

}  // namespace millrace
