// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/row_expansion.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Two rows of three columns and a padding row. Values outside of the windows are 99.
const auto slab = bytes_of<std::int16_t>({99, 16384, -32768, 8192, 99, 99, 99, 99, 99});
const std::vector<RowWindow> windows{{.left = 0, .size = 2}, {.left = 1}};

std::vector<float> expanded(const RowFormat& format) {
  std::vector<std::byte> tensor(9 * sizeof(float), std::byte{0x77});
  expand_rows(format, slab, windows, 3, tensor);
  return values_of<float>(tensor);
}

}  // namespace

TEST_CASE("bare rows become the tensor: converted frames, padded with zeros, and padding rows") {
  CHECK(expanded({.dtype = Element::f32, .context = 1}) ==
        std::vector<float>{0, 0.5f, -1, 0.25f, 0, 0, 0, 0, 0});
}

TEST_CASE("bare rows become the tensor: converted frames, padded by repeating them") {
  CHECK(expanded({.dtype = Element::f32, .context = 1, .repeat = true}) ==
        std::vector<float>{0.5f, 0.5f, -1, 0.25f, 0.25f, 0.25f, 0, 0, 0});
}
