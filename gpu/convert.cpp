// SPDX-License-Identifier: Apache-2.0
#include "gpu/convert.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace millrace {

namespace {

using Half = std::uint16_t;  // its bits (base/half.h)

float float_of_s16(std::int16_t value) { return static_cast<float>(value) * 0x1p-15f; }

// As float_to_half, but finite whatever comes: what is beyond the largest half becomes it. That
// leaves out the cases that make float_to_half half as fast in a loop.
Half half_of_float(float value) {
  constexpr std::int32_t largest = 0x477f'e000;  // 65504
  const auto bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t magnitude = std::min(bits & 0x7fff'ffff, largest);
  const std::int32_t subnormal =
      std::bit_cast<std::int32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f00'0000;
  const std::int32_t odd = (magnitude >> 13) & 1;
  const std::int32_t normal = (magnitude - (112 << 23) + 0xfff + odd) >> 13;
  const std::int32_t finite = magnitude < (113 << 23) ? subnormal : normal;
  return static_cast<Half>(finite | ((bits >> 16) & 0x8000));
}

Half half_of_s16(std::int16_t value) { return half_of_float(float_of_s16(value)); }

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
  if (from == Element::f16 && to == Element::f32) return convert<Half, float, half_to_float>;
  return nullptr;
}

}  // namespace millrace
