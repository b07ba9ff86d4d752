// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <vector>

#include "tests/input/conversion.h"

using namespace millrace;
using test::converted;
using test::values_of;

namespace {

std::vector<std::byte> all_codes() {
  std::vector<std::byte> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  return codes;
}

// The tables of ITU-T G.711: segment s has 16 intervals; the value is the middle of its interval.
int mulaw_value(int code) {
  const int inverted = ~code & 0xff, segment = inverted >> 4 & 7, interval = inverted & 15;
  const int first = 33 * (1 << segment) - 33, width = 2 << segment;
  const int magnitude = 4 * (first + interval * width);  // of 14 bits, in 16
  return inverted & 0x80 ? -magnitude : magnitude;
}

int alaw_value(int code) {
  const int even = code ^ 0x55, segment = even >> 4 & 7, interval = even & 15;
  const int width = segment < 2 ? 2 : 1 << segment;
  const int first = segment == 0 ? 0 : 16 << segment;
  const int magnitude = 8 * (first + interval * width + width / 2);  // of 13 bits, in 16
  return even & 0x80 ? magnitude : -magnitude;
}

template <class Law>
void check_law(SampleFormat format, Law value) {
  const FrameType s16{.element = Element::s16}, f32{.element = Element::f32};
  const auto integers =
      values_of<std::int16_t>(converted(format_of(format, s16), s16, all_codes()));
  const auto floats = values_of<float>(converted(format_of(format, f32), f32, all_codes()));
  for (int code = 0; code < 256; ++code) {
    INFO(code);
    CHECK(integers[static_cast<std::size_t>(code)] == value(code));
    CHECK(floats[static_cast<std::size_t>(code)] == static_cast<float>(value(code)) / 32768);
  }
}

}  // namespace

TEST_CASE("each code of mulaw has the value of G.711") {
  check_law(SampleFormat::mulaw, mulaw_value);
}

TEST_CASE("each code of alaw has the value of G.711") { check_law(SampleFormat::alaw, alaw_value); }

TEST_CASE("known codes of G.711 have the values of other decoders") {
  using Code = std::uint8_t;
  CHECK(converted<std::int16_t, Code>(SampleFormat::mulaw, Element::s16,
                                      {0x00, 0x80, 0xff, 0x7f, 0x31, 0xb7}) ==
        std::vector<std::int16_t>{-32124, 32124, 0, 0, -3772, 3004});
  CHECK(converted<std::int16_t, Code>(SampleFormat::alaw, Element::s16,
                                      {0x2a, 0xaa, 0x55, 0xd5, 0x31, 0xb7}) ==
        std::vector<std::int16_t>{-32256, 32256, -8, 8, -10496, 9472});
}
