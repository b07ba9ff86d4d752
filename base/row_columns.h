// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// Where the windows of a chunk rule lie in their rows: `context` columns stand before each body,
// filled from the body backwards; with a context of 0 each window begins at column 0.
struct RowColumns {
  std::uint32_t context = 0;

  // Columns before the window of a row that has `left` frames before its body.
  constexpr std::uint32_t lead(std::uint32_t left) const {
    return left < context ? context - left : 0;
  }
  // The first column of that row's body.
  constexpr std::uint32_t body(std::uint32_t left) const { return lead(left) + left; }
};

}  // namespace millrace
