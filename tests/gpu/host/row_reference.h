// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "gpu/host/row_format.h"
#include "tests/gpu/host/values.h"

namespace millrace::test {

// All conversions, from the type of the frames to that of the tensor.
inline constexpr std::pair<Element, Element> conversions[] = {
    {Element::s16, Element::s16}, {Element::s16, Element::f32}, {Element::s16, Element::f16},
    {Element::f32, Element::f32}, {Element::f32, Element::f16}, {Element::f16, Element::f16},
    {Element::f16, Element::f32}};

// The row by its definition, value by value in double precision. Requires: all values of the window
// are finite.
inline std::vector<std::byte> row_by_definition(const RowFormat& format, std::uint32_t width,
                                                Bytes window, std::uint32_t left) {
  const std::size_t in = size_of(format.frames), out = size_of(format.dtype);
  const std::int64_t frames = static_cast<std::int64_t>(window.size() / in / format.values);
  const std::int64_t lead = format.context == 0 ? 0 : std::int64_t{format.context} - left;
  std::vector<std::byte> row(width * format.values * out);
  for (std::int64_t column = 0; column < width; ++column)
    for (std::int64_t value = 0; value < format.values; ++value) {
      const std::int64_t frame = std::clamp<std::int64_t>(column - lead, 0, frames - 1);
      if (frame != column - lead && !format.repeat) continue;
      const std::byte* from = &window[static_cast<std::size_t>(frame * format.values + value) * in];
      std::byte* to = &row[static_cast<std::size_t>(column * format.values + value) * out];
      if (format.frames == format.dtype)
        std::memcpy(to, from, in);
      else
        put_value(value_at(from, format.frames), format.dtype, to);
    }
  return row;
}

// The bits of a random finite value. Some f32 values become denormal or zero as f16, or are beyond
// its range.
inline std::uint32_t random_bits(std::mt19937& random, Element element) {
  const auto bits = static_cast<std::uint32_t>(random());
  if (element == Element::s16) return bits & 0xffff;
  if (element == Element::f16) return bits & (random() % 2 == 0 ? 0xbfff : 0xfbff);
  return (bits & 0x807f'ffff) | (97 + static_cast<std::uint32_t>(random() % 49)) << 23;
}

// `count` such values, contiguous.
inline std::vector<std::byte> random_values(std::mt19937& random, Element element,
                                            std::size_t count) {
  std::vector<std::byte> values(count * size_of(element));
  for (std::size_t at = 0; at < values.size(); at += size_of(element)) {
    const std::uint32_t bits = random_bits(random, element);
    std::memcpy(&values[at], &bits, size_of(element));
  }
  return values;
}

}  // namespace millrace::test
