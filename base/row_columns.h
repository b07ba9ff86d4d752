// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// The columns of a row: `context` columns come before each body and are filled from the body
// backwards. With a context of 0 each window begins at column 0. The only code that computes where
// a window lies in its row.
struct RowColumns {
  std::uint32_t context = 0;

  // The number of columns before the window, if `left` frames precede the body.
  constexpr std::uint32_t lead(std::uint32_t left) const {
    return left < context ? context - left : 0;
  }
  // The first column of the body.
  constexpr std::uint32_t body(std::uint32_t left) const { return lead(left) + left; }
  // The columns that a row needs: those before its window, and the window. Requires: they are at
  // most UINT32_MAX.
  constexpr std::uint32_t needed(std::uint32_t left, std::uint32_t size,
                                 std::uint32_t right) const {
    return body(left) + size + right;
  }
  bool operator==(const RowColumns&) const = default;
};

}  // namespace millrace
