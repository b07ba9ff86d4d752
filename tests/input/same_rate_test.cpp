// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "base/half.h"
#include "tests/input/conversion.h"

using namespace millrace;
using test::bytes_of;
using test::Conversion;
using test::converted;
using test::values_of;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

FrameType frame(Element element, std::uint32_t values = 1) {
  return {.element = element, .values = values};
}

// A converter without a change of rate, and all its output.
Conversion conversion_of(SampleFormat from, const FrameType& to, std::size_t piece = 1000) {
  return {format_of(from, to), to, piece};
}

bool accepts(Conversion& conversion, Bytes bytes) {
  return conversion.message(bytes).fault == InputConverter::Fault::none;
}
template <class T>
bool accepts(Conversion& conversion, std::initializer_list<T> values) {
  return accepts(conversion, bytes_of(values));
}

}  // namespace

TEST_CASE("s16 is not converted to s16") {
  CHECK(converted<std::int16_t, std::int16_t>(SampleFormat::s16le, Element::s16,
                                              {0, 1, -1, 32767, -32768}) ==
        std::vector<std::int16_t>{0, 1, -1, 32767, -32768});
}

TEST_CASE("s16 is divided by 32768 to become a float") {
  CHECK(converted<float, std::int16_t>(SampleFormat::s16le, Element::f32, {0, 1, 16384, -32768}) ==
        std::vector<float>{0, 0x1p-15f, 0.5f, -1});
  CHECK(converted<std::uint16_t, std::int16_t>(SampleFormat::s16le, Element::f16,
                                               {0, 1, 16384, -32768}) ==
        std::vector<std::uint16_t>{0, 0x0200, 0x3800, 0xbc00});
}

TEST_CASE("a float becomes the nearest s16, ties to even") {
  CHECK(converted<std::int16_t, float>(
            SampleFormat::f32le, Element::s16,
            {0, 1 / 32768.0f, -0.5f, 0.5f / 32768, 1.5f / 32768, -1.5f / 32768, 0.6f / 32768}) ==
        std::vector<std::int16_t>{0, 1, -16384, 0, 2, -2, 1});
}

TEST_CASE("every s16 is unchanged when converted to float and back") {
  Conversion there = conversion_of(SampleFormat::s16le, frame(Element::f32));
  std::vector<std::int16_t> all(65536);
  std::generate(all.begin(), all.end(), [next = -32768]() mutable { return next++; });
  CHECK(accepts(there, bytes_of(std::span<const std::int16_t>(all))));
  Conversion back = conversion_of(SampleFormat::f32le, frame(Element::s16));
  CHECK(accepts(back, there.frames.bytes));
  CHECK(values_of<std::int16_t>(back.frames.bytes) == all);
  CHECK(back.clamped == 0);
}

TEST_CASE("floats beyond the range are clamped and counted") {
  Conversion audio = conversion_of(SampleFormat::f32le, frame(Element::s16));
  CHECK(accepts(audio, {1.0f, 1.5f, 1e30f, -1.0f, -1.00001f, -1e30f}));
  CHECK(values_of<std::int16_t>(audio.frames.bytes) ==
        std::vector<std::int16_t>{32767, 32767, 32767, -32768, -32768, -32768});
  CHECK(audio.clamped == 4);

  Conversion features = conversion_of(SampleFormat::f32le, frame(Element::f16));
  CHECK(accepts(features, {65504.0f, 65530.0f, -1e30f}));
  CHECK(values_of<std::uint16_t>(features.frames.bytes) ==
        std::vector<std::uint16_t>{0x7bff, 0x7bff, 0xfbff});
  CHECK(features.clamped == 2);

  CHECK(converted<float, float>(SampleFormat::f32le, Element::f32, {1e30f, -3}) ==
        std::vector<float>{1e30f, -3});
}

TEST_CASE("features keep their values") {
  CHECK(converted<float, std::uint16_t>(SampleFormat::f16le, Element::f32, {0x3c00, 0xc000}) ==
        std::vector<float>{1, -2});
  CHECK(converted<std::uint16_t, std::uint16_t>(SampleFormat::f16le, Element::f16,
                                                {0x3c00, 0xc001}) ==
        std::vector<std::uint16_t>{0x3c00, 0xc001});
  CHECK(converted<std::uint16_t, float>(SampleFormat::f32le, Element::f16, {1, -2}) ==
        std::vector<std::uint16_t>{0x3c00, 0xc000});
}

TEST_CASE("denormals become zero, zero keeps its sign") {
  using Bits = std::uint32_t;
  CHECK(converted<Bits, Bits>(SampleFormat::f32le, Element::f32,
                              {0x0000'0001, 0x807f'ffff, 0x8000'0000, 0x0080'0000}) ==
        std::vector<Bits>{0, 0x8000'0000, 0x8000'0000, 0x0080'0000});
  using Half = std::uint16_t;
  CHECK(converted<Half, Half>(SampleFormat::f16le, Element::f16, {0x0001, 0x83ff, 0x0400}) ==
        std::vector<Half>{0, 0x8000, 0x0400});
  CHECK(converted<Bits, Half>(SampleFormat::f16le, Element::f32, {0x03ff, 0x8000}) ==
        std::vector<Bits>{0, 0x8000'0000});
}

TEST_CASE("a message with NaN or infinity is refused, and the next is accepted") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Element element : {Element::s16, Element::f16, Element::f32}) {
    Conversion conversion = conversion_of(SampleFormat::f32le, frame(element), 2);
    CHECK_FALSE(accepts(conversion, {nan, 1.0f, 2.0f, 3.0f}));
    CHECK(accepts(conversion, {1.0f}));
    CHECK_FALSE(accepts(conversion, {1.0f, 2.0f, 3.0f, infinity}));
    CHECK_FALSE(accepts(conversion, {-infinity, 1e30f}));
    CHECK(accepts(conversion, {1.0f}));
  }
}

TEST_CASE("a half with NaN or infinity is refused") {
  for (Element element : {Element::s16, Element::f16, Element::f32})
    for (int bits : {0x7c00, 0xfc00, 0x7e00, 0xfc01}) {
      Conversion conversion = conversion_of(SampleFormat::f16le, frame(element));
      CHECK_FALSE(accepts(conversion, {std::uint16_t{0x3c00}, static_cast<std::uint16_t>(bits)}));
    }
}

TEST_CASE("a frame may be split between messages") {
  Conversion conversion = conversion_of(SampleFormat::s16le, frame(Element::s16, 2));
  const auto bytes = bytes_of<std::int16_t>({1, 2, 3, 4});
  CHECK(accepts(conversion, Bytes(bytes).first(1)));
  CHECK(conversion.converter.has_partial());
  CHECK(accepts(conversion, Bytes(bytes).subspan(1, 2)));
  CHECK(conversion.frames.bytes.empty());
  CHECK(accepts(conversion, Bytes(bytes).subspan(3, 4)));
  CHECK(values_of<std::int16_t>(conversion.frames.bytes) == std::vector<std::int16_t>{1, 2});
  CHECK(accepts(conversion, Bytes(bytes).subspan(7)));
  CHECK(values_of<std::int16_t>(conversion.frames.bytes) == std::vector<std::int16_t>{1, 2, 3, 4});
  CHECK_FALSE(conversion.converter.has_partial());
}

TEST_CASE("after a refused message, the next frame begins at the right byte") {
  Conversion conversion = conversion_of(SampleFormat::f32le, frame(Element::f32));
  const auto bytes = bytes_of({1.0f, infinity, 3.0f, 4.0f});
  CHECK_FALSE(accepts(conversion, Bytes(bytes).first(10)));
  conversion.frames.bytes.clear();
  CHECK(accepts(conversion, Bytes(bytes).subspan(10)));
  CHECK(values_of<float>(conversion.frames.bytes) == std::vector<float>{3, 4});
}

TEST_CASE("an empty message is valid") {
  Conversion conversion = conversion_of(SampleFormat::s16le, frame(Element::s16));
  CHECK(accepts(conversion, Bytes{}));
  CHECK(conversion.frames.bytes.empty());
}
