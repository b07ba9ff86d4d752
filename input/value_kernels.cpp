// SPDX-License-Identifier: Apache-2.0
#include "input/value_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "input/value_formats.h"

namespace millrace {
namespace {

using values::Alaw;
using values::F16;
using values::F32;
using values::Mulaw;
using values::S16;
using values::S24;

// The floats that a resampler receives.
struct Bounded : F32 {
  static constexpr float limit = 0x1p96f;
};

// Magnitudes of floats have the same order as their bits.
template <class To>
float clamp(float value, std::uint32_t& clamped) {
  constexpr auto limit = std::bit_cast<std::int32_t>(To::limit);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int32_t>(bits & 0x7fff'ffffu);
  clamped += magnitude > limit ? 1 : 0;
  return values::with_sign(static_cast<std::uint32_t>(magnitude > limit ? limit : magnitude), bits);
}

// True if no value of From is beyond the range of To.
template <class From, class To>
constexpr bool contained = (!std::is_same_v<From, F16> && !std::is_same_v<From, F32>) ||
                           (std::is_same_v<From, F16> && std::is_same_v<To, F32>);

template <class From, class To>
std::uint64_t convert(const std::byte* __restrict from, std::byte* __restrict to,
                      std::size_t values) {
  std::uint32_t clamped = 0;
  for (std::size_t i = 0; i < values; ++i) {
    const auto in = From::load(from + i * From::size);
    if constexpr (std::is_same_v<From, To>)
      To::store(to + i * To::size, From::flushed(in));
    else if constexpr (contained<From, To>)
      To::store(to + i * To::size, To::encode(From::decode(in)));
    else
      To::store(to + i * To::size, To::encode(clamp<To>(From::decode(in), clamped)));
  }
  return clamped;
}

template <>
std::uint64_t convert<S16, S16>(const std::byte* __restrict from, std::byte* __restrict to,
                                std::size_t values) {
  std::memcpy(to, from, values * S16::size);
  return 0;
}

// GCC 12 does not vectorise loads of three bytes. So a pass of its own puts them into words.
template <class To>
std::uint64_t convert_s24(const std::byte* __restrict from, std::byte* __restrict to,
                          std::size_t values) {
  constexpr std::size_t block = 512;
  std::array<S24::Bits, block> words;
  while (values > 0) {
    const std::size_t count = std::min(values, block);
    for (std::size_t i = 0; i + 1 < count; ++i) words[i] = F32::load(from + i * S24::size);
    words[count - 1] = S24::load(from + (count - 1) * S24::size);
    for (std::size_t i = 0; i < count; ++i)
      To::store(to + i * To::size, To::encode(S24::decode(words[i])));
    from += count * S24::size;
    to += count * To::size;
    values -= count;
  }
  return 0;
}

template <class Format>
bool finite(const std::byte* from, std::size_t values) {
  using Bits = typename Format::Bits;
  Bits infinite = 0;
  for (std::size_t i = 0; i < values; ++i)
    infinite = static_cast<Bits>(infinite | !Format::finite(Format::load(from + i * Format::size)));
  return infinite == 0;
}

}  // namespace

ValueKernel value_kernel(SampleFormat from, Element to) {
  static constexpr ValueKernel kernels[6][3] = {
      {convert<S16, S16>, convert<S16, F16>, convert<S16, F32>},
      {convert_s24<S16>, convert_s24<F16>, convert_s24<F32>},
      {convert<F16, S16>, convert<F16, F16>, convert<F16, F32>},
      {convert<F32, S16>, convert<F32, F16>, convert<F32, F32>},
      {convert<Mulaw, S16>, convert<Mulaw, F16>, convert<Mulaw, F32>},
      {convert<Alaw, S16>, convert<Alaw, F16>, convert<Alaw, F32>}};
  assert(from != SampleFormat::opus);
  return kernels[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

ValueKernel value_kernel_for_resampling(SampleFormat from) {
  if (from == SampleFormat::f32le) return convert<F32, Bounded>;
  return value_kernel(from, Element::f32);
}

bool all_finite(SampleFormat format, Bytes values) {
  switch (format) {
    case SampleFormat::f16le: return finite<F16>(values.data(), values.size() / F16::size);
    case SampleFormat::f32le: return finite<F32>(values.data(), values.size() / F32::size);
    default: return true;
  }
}

}  // namespace millrace
