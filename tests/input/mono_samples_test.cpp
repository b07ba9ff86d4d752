// SPDX-License-Identifier: Apache-2.0
#include "input/mono_samples.h"

#include <catch2/catch.hpp>
#include <vector>

#include "base/half.h"
#include "tests/support/bytes.h"

using namespace millrace;
using test::bytes_of;

namespace {

using Samples = std::vector<std::int16_t>;

template <class T>
Samples mono(const std::vector<T>& values, Element element, std::uint32_t channels) {
  Samples samples(values.size() / channels);
  to_mono_samples(bytes_of(values), {.element = element, .values = channels}, samples);
  return samples;
}

}  // namespace

TEST_CASE("mono s16 stays as it is") {
  const Samples values{0, 1, -1, 32767, -32768};
  CHECK(mono(values, Element::s16, 1) == values);
}

TEST_CASE("channels of s16 are averaged and rounded to the nearest value, ties to even") {
  CHECK(mono<std::int16_t>({1, 2, 3, 4, -1, -2, 32767, 32767, -32768, -32768}, Element::s16, 2) ==
        Samples{2, 4, -2, 32767, -32768});
  CHECK(mono<std::int16_t>({1, 2, 5, -1, -1, -3}, Element::s16, 3) == Samples{3, -2});
  CHECK(mono(Samples(256, -32768), Element::s16, 256) == Samples{-32768});
}

TEST_CASE("floats are rounded to the nearest s16, and clamped") {
  const std::vector<float> values{0,      0.5f,         -1,           1,     3e38f,
                                  -3e38f, 0.5f / 32768, 1.5f / 32768, 1e-40f};
  CHECK(mono(values, Element::f32, 1) == Samples{0, 16384, -32768, 32767, 32767, -32768, 0, 2, 0});
  CHECK(mono<float>({0.5f, 0.25f, 1, -1}, Element::f32, 2) == Samples{12288, 0});
}

TEST_CASE("halves are converted too") {
  CHECK(mono<std::uint16_t>({float_to_half(0.5f), float_to_half(-2)}, Element::f16, 1) ==
        Samples{16384, -32768});
  CHECK(mono<std::uint16_t>({float_to_half(0.5f), float_to_half(0.25f)}, Element::f16, 2) ==
        Samples{12288});
}

TEST_CASE("values at odd addresses are converted") {
  std::vector<std::byte> bytes(1);
  for (const std::byte byte : bytes_of<float>({0.5f, -0.5f})) bytes.push_back(byte);
  Samples samples(2);
  to_mono_samples(Bytes(bytes).subspan(1), {.element = Element::f32}, samples);
  CHECK(samples == Samples{16384, -16384});
}
