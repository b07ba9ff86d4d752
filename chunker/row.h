// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/event.h"

namespace millrace {

// Markers of a row. The protocol and the control arrays use the same numbers.
namespace flag {
inline constexpr std::uint8_t start = 1;    // first row of its stream
inline constexpr std::uint8_t reset = 2;    // the state must be fresh before this row
inline constexpr std::uint8_t segment = 4;  // first row of a segment
inline constexpr std::uint8_t gap = 8;      // frames were lost right before it
inline constexpr std::uint8_t last = 16;    // last row of its segment
inline constexpr std::uint8_t end = 32;     // last row of its stream, the slot is free after it
inline constexpr std::uint8_t abort = 64;   // the stream ended without the event `end`
}  // namespace flag

// One step of the model for one stream: the position of its body, the number of real context frames
// around it, and its markers. A row without frames (size 0) is a marker row. Positions and lengths
// are in frames of the pipeline.
struct Row {
  std::uint64_t seq = 0;    // number of rows of the stream before this one
  std::uint64_t begin = 0;  // position of the body's first frame
  std::uint32_t left = 0;   // real frames before the body
  std::uint32_t size = 0;   // frames of the body
  std::uint32_t right = 0;  // real frames after the body
  std::uint8_t flags = 0;
  ResetReason reason = ResetReason::none;  // not `none` if flags has reset
  std::uint64_t gap = 0;                   // frames lost right before it
  std::optional<std::uint64_t> mark;       // mark of the flush that ended its segment

  bool has_frames() const { return size > 0; }
  bool is(std::uint8_t markers) const { return (flags & markers) != 0; }
  std::uint64_t end() const { return begin + size; }
  std::uint64_t window_begin() const { return begin - left; }
  std::uint32_t window() const { return left + size + right; }
  bool operator==(const Row&) const = default;
};

}  // namespace millrace
