// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/convert.h"

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
