// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace millrace;

TEST_CASE("halves have the values of IEEE binary16") {
  CHECK(half_to_float(0x0000) == 0.0f);
  CHECK(half_to_float(0x3c00) == 1.0f);
  CHECK(half_to_float(0xc000) == -2.0f);
  CHECK(half_to_float(0x3555) == 0.333251953125f);
  CHECK(half_to_float(0x7bff) == 65504.0f);
  CHECK(half_to_float(0x0001) == 0x1p-24f);
  CHECK(half_to_float(0x03ff) == 1023 * 0x1p-24f);
  CHECK(half_to_float(0xfc00) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(half_to_float(0x7e00)));
}

TEST_CASE("every half is unchanged when converted to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((half & 0x7fff) > 0x7c00) continue;  // NaN
    if (float_to_half(half_to_float(half)) != half) FAIL("half " << bits);
  }
}

TEST_CASE("a float becomes the nearest half, ties to even") {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto next = static_cast<std::uint16_t>(bits + 1);
    const float middle = (half_to_float(half) + half_to_float(next)) / 2;
    const std::uint16_t even = bits % 2 == 0 ? half : next;
    if (float_to_half(middle) != even) FAIL("at the middle above half " << bits);
    if (float_to_half(std::nextafter(middle, 0.0f)) != half) FAIL("below it");
    if (float_to_half(std::nextafter(middle, 1e9f)) != next) FAIL("above it");
  }
  CHECK(float_to_half(65519.99f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(-1e30f) == 0xfc00);
  CHECK(float_to_half(1e-30f) == 0x0000);
  CHECK(float_to_half(std::numeric_limits<float>::quiet_NaN()) == 0x7e00);
}
