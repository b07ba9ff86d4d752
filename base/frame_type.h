// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_names.h"

namespace millrace {

// The representation of one value of a frame. Little-endian.
enum class Element : std::uint8_t { s16, f16, f32 };

constexpr std::size_t size_of(Element element) { return element == Element::f32 ? 4 : 2; }

// The unit of a stream: one audio sample of every channel, or one feature vector.
struct FrameType {
  Element element = Element::s16;
  std::uint32_t values = 1;  // per frame: channels of audio, dim of features
  double rate = 16000;       // frames per second; may be fractional for features (12.5)
  bool features = false;     // a frame is a feature vector, not an audio sample

  constexpr std::size_t bytes() const { return size_of(element) * values; }
  constexpr bool operator==(const FrameType&) const = default;
};

}  // namespace millrace
