// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/input/conversion.h"

using namespace millrace;
using test::Conversion;
using test::converted;
using test::values_of;

namespace {

constexpr FrameType f32{.element = Element::f32};

template <class To, class From>
std::vector<To> one_of(SampleFormat format, std::uint32_t channels, ChannelChoice choice,
                       Element element, std::initializer_list<From> values) {
  const ClientFormat from{.format = format, .values = channels, .channel = choice};
  return values_of<To>(converted(from, {.element = element}, test::bytes_of(values)));
}

}  // namespace

TEST_CASE("one channel is selected") {
  using S16 = std::int16_t;
  CHECK(one_of<S16, S16>(SampleFormat::s16le, 2, OneChannel{0}, Element::s16, {1, 2, 3, 4}) ==
        std::vector<S16>{1, 3});
  CHECK(one_of<S16, S16>(SampleFormat::s16le, 2, OneChannel{1}, Element::s16, {1, 2, 3, 4}) ==
        std::vector<S16>{2, 4});
  CHECK(one_of<float, float>(SampleFormat::f32le, 3, OneChannel{2}, Element::f32,
                             {1, 2, 3, 4, 5, 6}) == std::vector<float>{3, 6});
  using Code = std::uint8_t;
  CHECK(one_of<S16, Code>(SampleFormat::mulaw, 2, OneChannel{1}, Element::s16, {0x00, 0x80}) ==
        std::vector<S16>{32124});
  CHECK(one_of<float, Code>(SampleFormat::s24le, 2, OneChannel{1}, Element::f32,
                            {1, 2, 3, 0, 0, 0x40}) == std::vector<float>{0.5f});
}

TEST_CASE("the mean of channels is rounded once, ties to even") {
  using S16 = std::int16_t;
  CHECK(one_of<S16, S16>(SampleFormat::s16le, 2, MeanOfChannels{}, Element::s16,
                         {1, 2, 2, 3, -1, -2, -3, -2, 32767, 32767, -32768, -32768, 32767, -32768,
                          7, 9}) == std::vector<S16>{2, 2, -2, -2, 32767, -32768, 0, 8});
  CHECK(one_of<S16, S16>(SampleFormat::s16le, 3, MeanOfChannels{}, Element::s16,
                         {1, 1, 0, 1, 0, 0, -32768, -32768, -32768}) ==
        std::vector<S16>{1, 0, -32768});
  CHECK(one_of<float, float>(SampleFormat::f32le, 2, MeanOfChannels{}, Element::f32,
                             {1, 2, 3e38f, 3e38f, -0.5f, 0.5f}) ==
        std::vector<float>{1.5f, 3e38f, 0});
}

TEST_CASE("a client with one channel needs no choice") {
  for (const ChannelChoice choice : {ChannelChoice(OneChannel{0}), ChannelChoice(MeanOfChannels{})})
    CHECK(one_of<std::int16_t, std::int16_t>(SampleFormat::s16le, 1, choice, Element::s16,
                                             {1, -2}) == std::vector<std::int16_t>{1, -2});
}

TEST_CASE("the means of every number of channels are those of doubles") {
  std::mt19937 random(1);
  for (const std::uint32_t channels : {2u, 3u, 7u, 256u}) {
    const ClientFormat from{
        .format = SampleFormat::f32le, .values = channels, .channel = MeanOfChannels{}};
    const auto bytes = test::noise(from, 50, random);
    const auto values = values_of<float>(bytes);
    const auto means = values_of<float>(converted(from, f32, bytes));
    REQUIRE(means.size() == 50);
    for (std::size_t i = 0; i < means.size(); ++i) {
      double sum = 0;
      for (std::uint32_t c = 0; c < channels; ++c) sum += values[i * channels + c];
      CHECK(means[i] == static_cast<float>(sum / channels));
    }
  }
}

TEST_CASE("channels are selected before the rate is converted") {
  std::mt19937 random(2);
  for (const double rate : {8000.0, 44100.0}) {
    ClientFormat stereo{.values = 2, .rate = rate, .channel = OneChannel{1}};
    const auto bytes = test::noise(stereo, 3000, random);
    const auto values = values_of<std::int16_t>(bytes);
    std::vector<std::int16_t> right;
    for (std::size_t i = 1; i < values.size(); i += 2) right.push_back(values[i]);
    CHECK(converted(stereo, f32, bytes) == converted({.rate = rate}, f32, test::bytes_of(right)));
  }
}

TEST_CASE("channels are resampled as each of them alone") {
  std::mt19937 random(3);
  for (const double rate : {8000.0, 44100.0, 48000.0}) {
    const ClientFormat stereo{.values = 2, .rate = rate};
    Conversion both(stereo, {.element = Element::f32, .values = 2});
    for (int run = 0; run < 3; ++run) {
      const std::size_t begin = both.frames.bytes.size();
      const auto bytes = test::noise(stereo, 2000, random);
      both.message(bytes);
      both.drain();
      const auto frames = values_of<float>(Bytes(both.frames.bytes).subspan(begin));
      for (const std::uint32_t c : {0u, 1u}) {
        const auto alone = values_of<float>(
            converted({.values = 2, .rate = rate, .channel = OneChannel{c}}, f32, bytes));
        REQUIRE(frames.size() == 2 * alone.size());
        for (std::size_t i = 0; i < alone.size(); ++i) REQUIRE(frames[2 * i + c] == alone[i]);
      }
    }
  }
}
