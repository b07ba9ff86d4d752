// SPDX-License-Identifier: Apache-2.0
#include "gpu/convert.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace millrace {

namespace {

using Half = std::uint16_t;  // the bits of an f16

// Without branches, so that the loops below vectorise on any x86-64 and ARM.

float float_of_s16(std::int16_t value) { return static_cast<float>(value) * 0x1p-15f; }

Half half_of_float(float value) {
  constexpr std::int32_t largest = 0x477fe000;         // 65504
  constexpr std::int32_t smallest_normal = 113 << 23;  // 2^-14
  constexpr std::int32_t rebias = (127 - 15) << 23;
  constexpr float half_ulp_of_denormals = 0.5f;  // its ulp is the step of f16's denormals, 2^-24

  const auto bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t magnitude = std::min(bits & 0x7fffffff, largest);
  // Up to just below half of what is cut off, and up to half where the rest is odd: to nearest
  // even.
  const std::int32_t normal = (magnitude - rebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // The addition lets the machine round at the right bit.
  const std::int32_t denormal =
      std::bit_cast<std::int32_t>(std::bit_cast<float>(magnitude) + half_ulp_of_denormals) -
      std::bit_cast<std::int32_t>(half_ulp_of_denormals);
  const std::int32_t half = magnitude < smallest_normal ? denormal : normal;
  return static_cast<Half>(half | ((bits >> 16) & 0x8000));
}

Half half_of_s16(std::int16_t value) { return half_of_float(float_of_s16(value)); }

float float_of_half(Half half) {
  const std::int32_t magnitude = half & 0x7fff;
  const std::int32_t normal = (magnitude << 13) + ((127 - 15) << 23);
  const auto denormal = std::bit_cast<std::int32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const std::int32_t bits = magnitude < 0x0400 ? denormal : normal;
  return std::bit_cast<float>(bits | (half & 0x8000) << 16);
}

template <class From, class To, To (*one)(From)>
void convert(const std::byte* __restrict from, std::byte* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    From in;
    std::memcpy(&in, from + i * sizeof in, sizeof in);
    const To out = one(in);
    std::memcpy(to + i * sizeof out, &out, sizeof out);
  }
}

template <std::size_t size>
void copy(const std::byte* from, std::byte* to, std::size_t count) {
  if (count > 0) std::memcpy(to, from, count * size);
}

}  // namespace

Convert conversion(Element from, Element to) {
  if (from == to) return size_of(to) == 4 ? copy<4> : copy<2>;
  if (from == Element::s16 && to == Element::f32) return convert<std::int16_t, float, float_of_s16>;
  if (from == Element::s16 && to == Element::f16) return convert<std::int16_t, Half, half_of_s16>;
  if (from == Element::f32 && to == Element::f16) return convert<float, Half, half_of_float>;
  if (from == Element::f16 && to == Element::f32) return convert<Half, float, float_of_half>;
  return nullptr;
}

}  // namespace millrace
