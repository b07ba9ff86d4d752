// SPDX-License-Identifier: Apache-2.0
#include "input/frame_converter.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/half.h"

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little,
              "frames are kept in the byte order of the wire");

// A representation of a value: its bits and their meaning. `limit` is the largest magnitude of a
// float that it can hold. Uses integers without branches, so that loops vectorise.

struct S16 {
  using Bits = std::uint16_t;
  static constexpr float limit = 1;
  static bool finite(Bits) { return true; }
  static Bits flushed(Bits bits) { return bits; }
  static float decode(Bits bits) {
    return static_cast<float>(static_cast<std::int16_t>(bits)) * 0x1p-15f;
  }
  static Bits encode(float value) {
    // Adding 1.5 * 2^23 rounds to an integer, ties to even, and leaves it in the low bits.
    const auto whole = std::bit_cast<std::int32_t>(value * 32768 + 0x1.8p23f) - 0x4b40'0000;
    return static_cast<Bits>(whole > 32767 ? 32767 : whole);
  }
};

struct F16 {
  using Bits = std::uint16_t;
  static constexpr float limit = 65504;
  static bool finite(Bits bits) { return (bits & 0x7c00) != 0x7c00; }
  static Bits flushed(Bits bits) {
    return static_cast<Bits>((bits & 0x7c00) == 0 ? bits & 0x8000 : bits);
  }
  static float decode(Bits bits) { return half_to_float(bits); }
  static Bits encode(float value) { return float_to_half(value); }
};

struct F32 {
  using Bits = std::uint32_t;
  static constexpr float limit = std::numeric_limits<float>::max();
  static bool finite(Bits bits) { return (bits & 0x7f80'0000u) != 0x7f80'0000u; }
  static Bits flushed(Bits bits) { return (bits & 0x7f80'0000u) == 0 ? bits & 0x8000'0000u : bits; }
  static float decode(Bits bits) { return std::bit_cast<float>(bits); }
  static Bits encode(float value) { return std::bit_cast<Bits>(value); }
};

// Magnitudes of floats have the same order as their bits.
template <class To>
float clamp(float value, std::uint32_t& clamped) {
  constexpr auto limit = std::bit_cast<std::int32_t>(To::limit);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int32_t>(bits & 0x7fff'ffffu);
  clamped += magnitude > limit ? 1 : 0;
  const auto kept = static_cast<std::uint32_t>(magnitude > limit ? limit : magnitude);
  return std::bit_cast<float>((bits & 0x8000'0000u) | kept);
}

// Both addresses may be odd, so values are copied in and out. Two loops, because GCC 12 does not
// vectorise one loop with sums of different widths.
template <class From, class To>
FrameConverter::Findings convert_values(const std::byte* __restrict from, std::byte* __restrict to,
                                        std::size_t values) {
  using In = typename From::Bits;
  In in, infinite = 0;
  for (std::size_t i = 0; i < values; ++i) {
    std::memcpy(&in, from + i * sizeof in, sizeof in);
    infinite = static_cast<In>(infinite | !From::finite(in));
  }
  typename To::Bits out;
  std::uint32_t clamped = 0;
  for (std::size_t i = 0; i < values; ++i) {
    std::memcpy(&in, from + i * sizeof in, sizeof in);
    in = From::flushed(in);
    if constexpr (std::is_same_v<From, To>) {
      out = in;
    } else {
      out = To::encode(clamp<To>(From::decode(in), clamped));
    }
    std::memcpy(to + i * sizeof out, &out, sizeof out);
  }
  return {infinite == 0, clamped};
}

template <>
FrameConverter::Findings convert_values<S16, S16>(const std::byte* __restrict from,
                                                  std::byte* __restrict to, std::size_t values) {
  std::memcpy(to, from, values * sizeof(S16::Bits));
  return {};
}

FrameConverter::Kernel kernel_for(SampleFormat from, Element to) {
  static constexpr FrameConverter::Kernel kernels[3][3] = {
      {convert_values<S16, S16>, convert_values<S16, F16>, convert_values<S16, F32>},
      {convert_values<F16, S16>, convert_values<F16, F16>, convert_values<F16, F32>},
      {convert_values<F32, S16>, convert_values<F32, F16>, convert_values<F32, F32>}};
  return kernels[static_cast<int>(from)][static_cast<int>(to)];
}

}  // namespace

FrameConverter::FrameConverter(SampleFormat from, const FrameType& to)
    : kernel_(kernel_for(from, to.element)),
      value_(size_of(from)),
      client_frame_(value_ * to.values),
      pipeline_frame_(to.bytes()) {}

void FrameConverter::convert(Bytes& message, MutableBytes to) {
  assert(to.size() % pipeline_frame_ == 0);
  assert(to.size() / pipeline_frame_ <= whole_frames(message.size()));
  if (to.empty()) return;
  if (has_partial()) {
    const Bytes missing = message.first(client_frame_ - partial_.size());
    partial_.insert(partial_.end(), missing.begin(), missing.end());
    convert_frames(partial_, to.first(pipeline_frame_));
    partial_.clear();
    message = message.subspan(missing.size());
    to = to.subspan(pipeline_frame_);
  }
  const Bytes whole = message.first(to.size() / pipeline_frame_ * client_frame_);
  convert_frames(whole, to);
  message = message.subspan(whole.size());
}

FrameConverter::Findings FrameConverter::finish(Bytes rest) {
  assert(whole_frames(rest.size()) == 0);
  partial_.insert(partial_.end(), rest.begin(), rest.end());
  return std::exchange(message_, {});
}

void FrameConverter::convert_frames(Bytes from, MutableBytes to) {
  if (from.empty()) return;
  const std::size_t values = from.size() / value_;
  const Findings found = kernel_(from.data(), to.data(), values);
  message_.finite = message_.finite && found.finite;
  message_.clamped += found.clamped;
}

}  // namespace millrace
