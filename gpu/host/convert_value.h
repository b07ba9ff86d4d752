// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "base/half.h"

// The conversions of convert.h for single values, shared by the host's loops and the kernels.
namespace millrace {

using Half = std::uint16_t;  // the bits of an f16 (base/half.h)

constexpr float float_of_s16(std::int16_t value) { return static_cast<float>(value) * 0x1p-15f; }

// Like float_to_half, but the result is always finite: larger magnitudes become 65504. Without the
// cases for infinity and NaN it is twice as fast in a loop.
constexpr Half half_of_float(float value) {
  constexpr std::int32_t largest = 0x477f'e000;  // the bits of 65504.0f
  const auto bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t absolute = bits & 0x7fff'ffff;
  const std::int32_t magnitude = absolute < largest ? absolute : largest;
  const std::int32_t subnormal =
      std::bit_cast<std::int32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f00'0000;
  const std::int32_t odd = (magnitude >> 13) & 1;
  const std::int32_t normal = (magnitude - (112 << 23) + 0xfff + odd) >> 13;
  const std::int32_t finite = magnitude < (113 << 23) ? subnormal : normal;
  return static_cast<Half>(finite | ((bits >> 16) & 0x8000));
}

constexpr Half half_of_s16(std::int16_t value) { return half_of_float(float_of_s16(value)); }

}  // namespace millrace
