// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/frame_type.h"
#include "base/row_columns.h"

namespace millrace {

// How a row's frames become columns of the tensor. The window is contiguous. The columns around it
// hold 0, or copies of its first frame before it and of its last frame behind it.
struct RowFormat {
  Element frames = Element::s16;  // what streams hold
  Element dtype = Element::s16;   // what the tensor holds; s16 becomes x / 32768 elsewhere
  std::uint32_t values = 1;       // of a frame: channels or dim
  std::uint32_t context = 0;      // of RowColumns
  bool repeat = false;            // pad with frames, not with 0
  bool bare = false;              // what is around the window is left as it was: a device fills it

  constexpr std::uint32_t lead(std::uint32_t left) const { return RowColumns{context}.lead(left); }
  // The frames as they are, for a device that makes the tensor of them.
  constexpr RowFormat unexpanded() const {
    RowFormat format = *this;
    format.dtype = frames;
    format.bare = frames != dtype;
    return format;
  }
};

}  // namespace millrace
