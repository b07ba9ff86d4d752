// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/convert.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "gpu/host/convert_value.h"

namespace millrace {

namespace {

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

// The difference of a value and itself is 0, or NaN if the value is infinite or NaN. Four vectors
// of the least size that every processor has: a plain loop takes twice as long.
bool floats_are_finite(const std::byte* from, std::size_t count) {
  using Floats [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = float;
  using Bits [[gnu::vector_size(16)]] = std::int32_t;
  constexpr std::size_t lanes = 4, together = 4 * lanes;
  Bits found[4] = {};
  std::size_t i = 0;
  for (; i + together <= count; i += together)
    for (std::size_t k = 0; k < 4; ++k) {
      const Floats values = *reinterpret_cast<const Floats*>(from + 4 * (i + k * lanes));
      found[k] |= reinterpret_cast<Bits>(values - values);
    }
  const Bits all = found[0] | found[1] | found[2] | found[3];
  std::int32_t last = all[0] | all[1] | all[2] | all[3];
  for (; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, from + 4 * i, 4);
    last |= std::bit_cast<std::int32_t>(value - value);
  }
  return last == 0;
}

bool halves_are_finite(const std::byte* from, std::size_t count) {
  constexpr Half exponent = 0x7c00;
  Half found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Half bits = 0;
    std::memcpy(&bits, from + 2 * i, 2);
    found = static_cast<Half>(found | ((bits & exponent) == exponent ? 0xffff : 0));
  }
  return found == 0;
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

bool all_finite(Element element, Bytes values) {
  switch (element) {
    case Element::f32: return floats_are_finite(values.data(), values.size() / 4);
    case Element::f16: return halves_are_finite(values.data(), values.size() / 2);
    case Element::s16: break;
  }
  return true;
}

}  // namespace millrace
