// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/frame_type.h"
#include "tests/support/bytes.h"

namespace millrace::test {

// The value of an f16, by the definition of binary16 in double precision.
inline double value_of_half(std::uint16_t half) {
  const int exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// The finite f16 nearest to a value, ties to even, found by bisection.
inline std::uint16_t nearest_half(double value) {
  const double magnitude = std::abs(value);
  std::uint16_t below = 0, above = 0x7bff;  // magnitudes ascend with their bits
  if (magnitude >= value_of_half(above)) below = above;
  while (above - below > 1) {
    const auto middle = static_cast<std::uint16_t>((below + above) / 2);
    (value_of_half(middle) <= magnitude ? below : above) = middle;
  }
  const double to_below = magnitude - value_of_half(below);
  const double to_above = value_of_half(above) - magnitude;
  const bool up = to_above < to_below || (to_above == to_below && below % 2 == 1);
  const std::uint16_t half = up ? above : below;
  return static_cast<std::uint16_t>(half | (std::signbit(value) ? 0x8000 : 0));
}

inline double value_at(const std::byte* at, Element element) {
  std::int16_t sample;
  std::uint16_t half;
  float single;
  switch (element) {
    case Element::s16: std::memcpy(&sample, at, 2); return sample / 32768.0;
    case Element::f16: std::memcpy(&half, at, 2); return value_of_half(half);
    case Element::f32: std::memcpy(&single, at, 4); return single;
  }
  return 0;
}

// A value as the tensor must hold it. Requires: element is not s16.
inline void put_value(double value, Element element, std::byte* at) {
  if (element == Element::f32) {
    const auto single = static_cast<float>(value);
    std::memcpy(at, &single, 4);
  } else {
    const std::uint16_t half = nearest_half(value);
    std::memcpy(at, &half, 2);
  }
}

}  // namespace millrace::test
