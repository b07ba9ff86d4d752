// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/half.h"

namespace millrace {

// The representations of a value: its bits and their meaning, as a float. All use integers without
// branches, so that loops over values vectorise. For value_kernels.cpp.
//
//   Bits      holds the bits of a value; the low ones if the value has fewer
//   size      bytes of a value
//   limit     the largest magnitude of a float that the representation can hold
//   load      reads a value; the address may be odd
//   finite    false for the bits of NaN and infinity
//   decode    the float; a denormal becomes zero
//   encode    the nearest value, ties to even. Requires: not beyond `limit`
namespace values {

static_assert(std::endian::native == std::endian::little,
              "frames are kept in the byte order of the wire");

// The float with the magnitude's bits, and the sign in bit 31 of `sign`.
inline float with_sign(std::uint32_t magnitude, std::uint32_t sign) {
  return std::bit_cast<float>(magnitude | (sign & 0x8000'0000u));
}

template <class Word>
struct Plain {
  using Bits = Word;
  static constexpr std::size_t size = sizeof(Word);
  static Bits load(const std::byte* from) {
    Bits bits;
    std::memcpy(&bits, from, sizeof bits);
    return bits;
  }
  static void store(std::byte* to, Bits bits) { std::memcpy(to, &bits, sizeof bits); }
  static bool finite(Bits) { return true; }
  static Bits flushed(Bits bits) { return bits; }
};

struct S16 : Plain<std::uint16_t> {
  static constexpr float limit = 1;
  static float decode(Bits bits) {
    return static_cast<float>(static_cast<std::int16_t>(bits)) * 0x1p-15f;
  }
  static Bits encode(float value) {
    // Adding 1.5 * 2^23 rounds to an integer, ties to even, and leaves it in the low bits.
    const auto whole = std::bit_cast<std::int32_t>(value * 32768 + 0x1.8p23f) - 0x4b40'0000;
    return static_cast<Bits>(whole > 32767 ? 32767 : whole);
  }
};

struct S24 : Plain<std::uint32_t> {
  static constexpr std::size_t size = 3;
  static Bits load(const std::byte* from) {
    return static_cast<Bits>(from[0]) | static_cast<Bits>(from[1]) << 8 |
           static_cast<Bits>(from[2]) << 16;
  }
  static float decode(Bits bits) {
    return static_cast<float>(static_cast<std::int32_t>(bits << 8)) * 0x1p-31f;
  }
};

struct F16 : Plain<std::uint16_t> {
  static constexpr float limit = 65504;
  static bool finite(Bits bits) { return (bits & 0x7c00) != 0x7c00; }
  static Bits flushed(Bits bits) {
    return static_cast<Bits>((bits & 0x7c00) == 0 ? bits & 0x8000 : bits);
  }
  static float decode(Bits bits) { return half_to_float(flushed(bits)); }
  static Bits encode(float value) { return float_to_half(value); }
};

struct F32 : Plain<std::uint32_t> {
  static constexpr float limit = std::numeric_limits<float>::max();
  static bool finite(Bits bits) { return (bits & 0x7f80'0000u) != 0x7f80'0000u; }
  static Bits flushed(Bits bits) { return (bits & 0x7f80'0000u) == 0 ? bits & 0x8000'0000u : bits; }
  static float decode(Bits bits) { return std::bit_cast<float>(flushed(bits)); }
  static Bits encode(float value) { return std::bit_cast<Bits>(value); }
};

// G.711: three bits of exponent and four of mantissa, which are placed into those of a float. The
// value is the middle of its interval, hence the bit after the mantissa.
struct G711 : Plain<std::uint8_t> {
  static float scaled(std::uint32_t code) {
    return std::bit_cast<float>(0x4304'0000u + ((code & 0x7fu) << 19));  // from 132 on
  }
};

struct Mulaw : G711 {
  static float decode(Bits bits) {
    const std::uint32_t code = ~static_cast<std::uint32_t>(bits);
    const float magnitude = (scaled(code) - 132) * 0x1p-15f;
    return with_sign(std::bit_cast<std::uint32_t>(magnitude), code << 24);
  }
};

struct Alaw : G711 {
  static float decode(Bits bits) {
    const std::uint32_t code = static_cast<std::uint32_t>(bits) ^ 0x55u;
    // Exponent 0 has the interval of exponent 1 without its leading one, as denormals have.
    const bool least = (code & 0x70u) == 0;
    const float magnitude = (scaled(least ? code | 0x10u : code) - (least ? 256 : 0)) * 0x1p-15f;
    return with_sign(std::bit_cast<std::uint32_t>(magnitude), ~code << 24);
  }
};

}  // namespace values
}  // namespace millrace
