// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/input/conversion.h"

using namespace millrace;
using test::Conversion;
using test::converted;
using test::values_of;
using Fault = InputConverter::Fault;

namespace {

using Codes = std::vector<std::uint8_t>;

std::vector<std::int16_t> as_s16(SampleFormat format, const Codes& bytes) {
  const FrameType type{.element = Element::s16};
  return values_of<std::int16_t>(converted(format_of(format, type), type, test::bytes_of(bytes)));
}

std::vector<float> as_f32(SampleFormat format, const Codes& bytes) {
  const FrameType type{.element = Element::f32};
  return values_of<float>(converted(format_of(format, type), type, test::bytes_of(bytes)));
}

constexpr ClientFormat at_8k(SampleFormat format) { return {.format = format, .rate = 8000}; }

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("s24 has the values of its 24 bits") {
  const Codes codes{0, 0, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0x40, 0, 0, 0x80, 0xff, 0xff, 0x7f};
  CHECK(as_f32(SampleFormat::s24le, codes) ==
        std::vector<float>{0, 0x1p-23f, -0x1p-23f, 0.5f, -1, 1 - 0x1p-23f});
}

TEST_CASE("s24 becomes the nearest s16, ties to even") {
  const Codes codes{0x80, 0, 0, 0x80, 1, 0, 0x81, 0, 0, 0x7f, 0xff, 0x7f, 0xff, 0xff, 0x7f};
  CHECK(as_s16(SampleFormat::s24le, codes) == std::vector<std::int16_t>{0, 2, 1, 32767, 32767});
}

TEST_CASE("silence has golden values in every format") {
  const std::vector<std::int16_t> silence(2, 0);
  CHECK(as_s16(SampleFormat::s16le, {0, 0, 0, 0}) == silence);
  CHECK(as_s16(SampleFormat::s24le, {0, 0, 0, 0, 0, 0}) == silence);
  CHECK(as_s16(SampleFormat::f32le, {0, 0, 0, 0, 0, 0, 0, 0x80}) == silence);
  CHECK(as_s16(SampleFormat::mulaw, {0xff, 0x7f}) == silence);
  CHECK(as_s16(SampleFormat::alaw, {0xd5, 0x55}) == std::vector<std::int16_t>{8, -8});
}

TEST_CASE("a full-scale square wave has golden values in every format") {
  const std::vector<std::int16_t> square{32767, -32768};
  CHECK(as_s16(SampleFormat::s16le, {0xff, 0x7f, 0, 0x80}) == square);
  CHECK(as_s16(SampleFormat::s24le, {0xff, 0xff, 0x7f, 0, 0, 0x80}) == square);
  CHECK(as_s16(SampleFormat::f32le, {0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf}) == square);
  CHECK(as_s16(SampleFormat::mulaw, {0x80, 0x00}) == std::vector<std::int16_t>{32124, -32124});
  CHECK(as_s16(SampleFormat::alaw, {0xaa, 0x2a}) == std::vector<std::int16_t>{32256, -32256});
}

TEST_CASE("silence stays silence at another rate") {
  for (const SampleFormat format :
       {SampleFormat::s16le, SampleFormat::s24le, SampleFormat::f32le}) {
    const std::vector<std::byte> zeros(400 * size_of(format));
    const auto frames = values_of<std::int16_t>(converted(at_8k(format), {}, zeros));
    CHECK(frames == std::vector<std::int16_t>(800, 0));
  }
}

TEST_CASE("frames beyond the range after a change of rate are clamped and counted") {
  Conversion louder(at_8k(SampleFormat::f32le), {});
  louder.message(test::bytes_of(std::vector<float>(1000, 2)));
  const std::uint64_t clamped = louder.clamped + louder.drain().clamped;
  const auto frames = values_of<std::int16_t>(louder.frames.bytes);
  // A value of nearly 1 is in the range, and becomes 32767 too.
  const auto largest = std::count(frames.begin(), frames.end(), 32767);
  CHECK(largest > 1990);
  CHECK(clamped > 1980);
  CHECK(clamped <= static_cast<std::uint64_t>(largest));
}

TEST_CASE("no sum of a resampler becomes infinite") {
  const FrameType f32{.element = Element::f32};
  for (const double rate : {8000.0, 44100.0, 48000.0}) {
    Conversion largest({.format = SampleFormat::f32le, .rate = rate}, f32);
    std::vector<float> square(4410);
    for (std::size_t i = 0; i < square.size(); ++i) square[i] = i % 100 < 50 ? 3e38f : -3e38f;
    CHECK(largest.message(test::bytes_of(square)).clamped == 4410);
    largest.drain();
    for (const float value : values_of<float>(largest.frames.bytes))
      if (!std::isfinite(value)) FAIL(value);
  }
}

TEST_CASE("a message with NaN or infinity is not converted") {
  for (const double rate : {16000.0, 8000.0, 44100.0})
    for (const float value : {not_a_number, infinite, -infinite}) {
      Conversion conversion({.format = SampleFormat::f32le, .rate = rate}, {});
      conversion.message(test::bytes_of(std::vector<float>(500, 0.5f)));
      const std::uint64_t before = conversion.frames.count();
      std::vector<float> last(3000, 0.25f);
      last.back() = value;
      const auto refused = conversion.message(test::bytes_of(last));
      CHECK(refused.fault == Fault::not_finite);
      CHECK(refused.input_frames == 3000);
      CHECK(refused.appended == 0);
      CHECK(conversion.frames.count() == before);
    }
}

TEST_CASE("NaN in a channel that is not selected is found") {
  Conversion conversion({.format = SampleFormat::f32le, .values = 2, .channel = OneChannel{0}}, {});
  CHECK(conversion.message(test::bytes_of({0.5f, not_a_number})).fault == Fault::not_finite);
  CHECK(conversion.frames.count() == 0);
}

TEST_CASE("NaN in a frame of two messages belongs to the message that completes it") {
  Conversion conversion({.format = SampleFormat::f32le, .values = 2}, {.values = 2});
  const auto bytes = test::bytes_of({not_a_number, 0.5f, 0.5f, 0.5f});
  CHECK(conversion.message(Bytes(bytes).first(5)).fault == Fault::none);
  CHECK(conversion.converter.has_partial());
  const auto refused = conversion.message(Bytes(bytes).subspan(5, 5));
  CHECK(refused.fault == Fault::not_finite);
  CHECK(refused.input_frames == 1);
  CHECK(conversion.message(Bytes(bytes).subspan(10)).fault == Fault::none);
  CHECK(values_of<std::int16_t>(conversion.frames.bytes) ==
        std::vector<std::int16_t>{16384, 16384});
}

TEST_CASE("denormal values and means become zero") {
  const FrameType f32{.element = Element::f32};
  CHECK(converted<float, float>(SampleFormat::f32le, Element::f32, {1e-40f, -1e-40f}) ==
        std::vector<float>{0, 0});
  const ClientFormat mean{.format = SampleFormat::f32le, .values = 2, .channel = MeanOfChannels{}};
  const float least = std::numeric_limits<float>::min();
  CHECK(values_of<float>(converted(mean, f32, test::bytes_of({least, 0.0f, least, least}))) ==
        std::vector<float>{0, least});
}
