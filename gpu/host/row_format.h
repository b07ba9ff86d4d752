// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/frame_type.h"
#include "base/row_columns.h"

namespace millrace {

// How a row's frames become columns of the tensor. The window is contiguous. The columns before and
// after it hold 0 or, with `repeat`, copies of its first and its last frame.
struct RowFormat {
  Element frames = Element::s16;  // type of the streams' values
  Element dtype = Element::s16;   // type of the tensor's values; convert.h has the conversions
  std::uint32_t values = 1;       // per frame: channels or dim
  std::uint32_t context = 0;      // the context of RowColumns, in frames
  bool repeat = false;            // fill with copies of frames, not with 0
  bool bare = false;              // write the window only: a device fills the other columns

  // The number of columns before the window, if `left` frames precede the body.
  constexpr std::uint32_t lead(std::uint32_t left) const { return RowColumns{context}.lead(left); }
  // The format of a slab with unconverted frames, from which a device makes the tensor. Bare only
  // if the device has to convert.
  constexpr RowFormat unexpanded() const {
    RowFormat format = *this;
    format.dtype = frames;
    format.bare = frames != dtype;
    return format;
  }
};

}  // namespace millrace
