// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/frame_type.h"

namespace millrace {

// How a row's frames become columns of the tensor. The window is contiguous; around it stands 0,
// or its first frame before and its last frame behind it.
struct RowFormat {
  Element frames = Element::s16;  // what streams hold
  Element dtype = Element::s16;   // what the tensor holds; s16 becomes x / 32768 elsewhere
  std::uint32_t values = 1;       // of a frame: channels or dim
  std::uint32_t context = 0;      // columns before the body; 0: the window begins at column 0
  bool repeat = false;            // pad with frames, not with 0
  bool bare = false;              // what is around the window is left as it was: a device fills it

  // Columns before the window of a row that has `left` real frames before its body.
  constexpr std::uint32_t lead(std::uint32_t left) const {
    return left < context ? context - left : 0;
  }
  // The frames as they are, for a device that makes the tensor of them.
  constexpr RowFormat unexpanded() const {
    RowFormat format = *this;
    format.dtype = frames;
    format.bare = frames != dtype;
    return format;
  }
};

}  // namespace millrace
