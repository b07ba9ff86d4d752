// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace millrace {

// IEEE binary16 as bits: the supported compilers have no standard C++20 type for it.
// Both functions are branch-free enough to be vectorised in a loop.

constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  // The product moves the exponent's bias, and makes subnormal values normal.
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const bool finite = (half & 0x7c00u) != 0x7c00u;
  return std::bit_cast<float>(sign | (finite ? scaled : magnitude | 0x7f80'0000u));
}

// Rounds to nearest, ties to even. Values from 65520 on become infinity.
constexpr std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits & 0x8000'0000u) >> 16;
  const std::uint32_t magnitude = bits & 0x7fff'ffffu;
  // Adding 1/2 shifts a subnormal's bits to the low end, and the addition rounds them.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f00'0000u;
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  const std::uint32_t beyond = magnitude > 0x7f80'0000u ? 0x7e00u : 0x7c00u;
  const std::uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  return static_cast<std::uint16_t>(sign | (magnitude < (143u << 23) ? finite : beyond));
}

}  // namespace millrace
