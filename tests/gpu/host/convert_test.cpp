// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/convert.h"

#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "tests/gpu/host/values.h"

using namespace millrace;
using namespace millrace::test;

namespace {

template <class To, class From>
std::vector<To> converted(Element from, Element to, const std::vector<From>& values) {
  const auto in = bytes_of(values);
  std::vector<std::byte> out(values.size() * sizeof(To));
  conversion(from, to)(in.data(), out.data(), values.size());
  return values_of<To>(out);
}

std::vector<std::int16_t> every_sample() {
  std::vector<std::int16_t> samples;
  for (int sample = -32768; sample < 32768; ++sample)
    samples.push_back(static_cast<std::int16_t>(sample));
  return samples;
}

std::uint16_t half_of(float value) {
  return converted<std::uint16_t>(Element::f32, Element::f16, std::vector{value})[0];
}

}  // namespace

TEST_CASE("a sample becomes its value divided by 32768") {
  const std::vector<std::int16_t> samples{0, 1, -1, 16384, 32767, -32768};
  CHECK(converted<float>(Element::s16, Element::f32, samples) ==
        std::vector<float>{0, 0x1p-15f, -0x1p-15f, 0.5f, 0.999969482421875f, -1});
}

TEST_CASE("every sample becomes the nearest f16") {
  const auto samples = every_sample();
  const auto halves = converted<std::uint16_t>(Element::s16, Element::f16, samples);
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (halves[i] != nearest_half(samples[i] / 32768.0)) FAIL("sample " << samples[i]);
}

TEST_CASE("every sample becomes the exact f32") {
  const auto samples = every_sample();
  const auto values = converted<float>(Element::s16, Element::f32, samples);
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (values[i] != samples[i] / 32768.0) FAIL("sample " << samples[i]);
}

TEST_CASE("an f32 becomes the nearest f16, ties to even") {
  CHECK(half_of(1.0f) == 0x3c00);
  CHECK(half_of(-2.0f) == 0xc000);
  CHECK(half_of(0x1p-24f) == 0x0001);         // the smallest
  CHECK(half_of(0x1p-25f) == 0x0000);         // halfway to 0
  CHECK(half_of(0x1.000002p-25f) == 0x0001);  // just above it
  CHECK(half_of(3 * 0x1p-25f) == 0x0002);     // halfway between 1 and 2
  CHECK(half_of(0x1.ff8p-15f) == 0x03ff);     // the largest denormal
  CHECK(half_of(0x1.ffcp-15f) == 0x0400);     // halfway to the smallest normal
  CHECK(half_of(1.0f + 0x1p-11f) == 0x3c00);
  CHECK(half_of(1.0f + 3 * 0x1p-11f) == 0x3c02);
  CHECK(half_of(-0.0f) == 0x8000);
}

TEST_CASE("a value beyond the range of f16 becomes its largest value, never infinity") {
  CHECK(half_of(65504.0f) == 0x7bff);
  CHECK(half_of(65519.9f) == 0x7bff);
  CHECK(half_of(65520.0f) == 0x7bff);
  CHECK(half_of(-1e30f) == 0xfbff);
  CHECK(half_of(std::numeric_limits<float>::infinity()) == 0x7bff);
}

TEST_CASE("an f32 near each f16, or near each midpoint, becomes the nearest f16") {
  std::vector<float> values;
  for (std::uint16_t half = 0; half < 0x7bff; ++half) {
    const auto value = static_cast<float>(value_of_half(half));
    const auto middle = static_cast<float>((value_of_half(half) + value_of_half(half + 1)) / 2);
    for (float around : {value, middle})
      for (float to : {-1e9f, around, 1e9f}) {
        values.push_back(std::nextafter(around, to));
        values.push_back(-values.back());
      }
  }
  const auto halves = converted<std::uint16_t>(Element::f32, Element::f16, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (halves[i] != nearest_half(values[i])) FAIL("value " << values[i]);
}

TEST_CASE("an f32 with random bits becomes the nearest f16") {
  std::mt19937 random(1);
  std::vector<float> values;
  while (values.size() < 200'000) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) values.push_back(value);
  }
  const auto halves = converted<std::uint16_t>(Element::f32, Element::f16, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (halves[i] != nearest_half(values[i])) FAIL("value " << values[i]);
}

TEST_CASE("every finite f16 becomes the exact f32") {
  std::vector<std::uint16_t> halves;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    if ((bits & 0x7c00) != 0x7c00) halves.push_back(static_cast<std::uint16_t>(bits));
  const auto values = converted<float>(Element::f16, Element::f32, halves);
  for (std::size_t i = 0; i < halves.size(); ++i)
    if (values[i] != value_of_half(halves[i])) FAIL("half " << halves[i]);
}

TEST_CASE("only s16 can be converted to s16") {
  CHECK(conversion(Element::s16, Element::s16) != nullptr);
  CHECK(conversion(Element::f16, Element::s16) == nullptr);
  CHECK(conversion(Element::f32, Element::s16) == nullptr);
}

TEST_CASE("a value that is infinite or NaN is found at each place") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t size = 1; size < 50; ++size) {
    std::vector<float> values(size, std::numeric_limits<float>::max());
    values[size / 2] = std::numeric_limits<float>::denorm_min();
    std::vector<std::uint16_t> halves(size, 0x7bff);
    REQUIRE(all_finite(Element::f32, bytes_of(values)));
    REQUIRE(all_finite(Element::f16, bytes_of(halves)));
    for (std::size_t at = 0; at < size; ++at) {
      for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
        auto with_bad = values;
        with_bad[at] = bad;
        REQUIRE_FALSE(all_finite(Element::f32, bytes_of(with_bad)));
      }
      for (const int bad : {0x7c00, 0xfc00, 0x7e01}) {
        auto with_bad = halves;
        with_bad[at] = static_cast<std::uint16_t>(bad);
        REQUIRE_FALSE(all_finite(Element::f16, bytes_of(with_bad)));
      }
    }
  }
  CHECK(all_finite(Element::f32, {}));
  CHECK(all_finite(Element::s16, bytes_of<std::uint16_t>({0x7c00, 0xffff})));
}
