// SPDX-License-Identifier: Apache-2.0
#include "input/mono_samples.h"

#include <bit>
#include <cassert>
#include <cstring>

#include "base/half.h"

namespace millrace {
namespace {

// A value of a frame in units of s16, as a float. The sum of 256 channels of s16 is exact.
struct S16 {
  using Bits = std::int16_t;
  static float decode(Bits bits) { return static_cast<float>(bits); }
};
struct F16 {
  using Bits = std::uint16_t;
  static float decode(Bits bits) { return half_to_float(bits) * 32768; }
};
struct F32 {
  using Bits = float;
  static float decode(Bits value) { return value * 32768; }
};

std::int16_t rounded(float value) {
  value = value < -32768 ? -32768 : value;
  value = value > 32767 ? 32767 : value;
  // Adding 1.5 * 2^23 rounds to an integer, ties to even, and leaves it in the low bits.
  return static_cast<std::int16_t>(std::bit_cast<std::int32_t>(value + 0x1.8p23f));
}

// Values are copied out, because their addresses may be odd.
template <class From>
float decode_at(const std::byte* from, std::size_t i) {
  typename From::Bits bits;
  std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
  return From::decode(bits);
}

template <class From>
void convert(const std::byte* __restrict from, std::size_t channels,
             std::span<std::int16_t> samples) {
  std::int16_t* __restrict const to = samples.data();
  if (channels == 1) {  // a loop that vectorises
    for (std::size_t i = 0; i < samples.size(); ++i) to[i] = rounded(decode_at<From>(from, i));
    return;
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    float sum = 0;
    for (std::size_t c = 0; c < channels; ++c) sum += decode_at<From>(from, i * channels + c);
    to[i] = rounded(sum / static_cast<float>(channels));
  }
}

}  // namespace

void to_mono_samples(Bytes frames, const FrameType& type, std::span<std::int16_t> to) {
  assert(frames.size() == to.size() * type.bytes());
  switch (type.element) {
    case Element::s16:
      if (type.values > 1) return convert<S16>(frames.data(), type.values, to);
      if (!to.empty()) std::memcpy(to.data(), frames.data(), frames.size());
      return;
    case Element::f16: return convert<F16>(frames.data(), type.values, to);
    case Element::f32: return convert<F32>(frames.data(), type.values, to);
  }
}

}  // namespace millrace
