// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

#include "tests/input/conversion.h"

using namespace millrace;
using test::Conversion;

namespace {

constexpr SampleFormat formats[] = {SampleFormat::s16le, SampleFormat::s24le, SampleFormat::f32le,
                                    SampleFormat::mulaw, SampleFormat::alaw};

struct Choice {
  std::uint32_t client, pipeline;
  ChannelChoice channel;
};
const Choice choices[] = {{1, 1, AllChannels{}}, {2, 2, AllChannels{}},
                          {2, 1, OneChannel{1}}, {2, 1, MeanOfChannels{}},
                          {5, 1, OneChannel{3}}, {5, 1, MeanOfChannels{}}};

// The frames of the pipeline that were there after each number of input frames.
using Progress = std::map<std::uint64_t, std::uint64_t>;

struct Result {
  std::vector<std::byte> frames;
  Progress progress;
  std::uint64_t clamped = 0;
};

Result of_pieces(const ClientFormat& from, const FrameType& to, Bytes bytes, std::mt19937& random,
                 std::size_t longest) {
  Conversion conversion(from, to, 1 + random() % 700);
  Result result;
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(1 + random() % longest, bytes.size());
    conversion.message(bytes.first(size));
    bytes = bytes.subspan(size);
    result.progress[conversion.input_frames] = conversion.frames.count();
  }
  result.clamped = conversion.clamped + conversion.drain().clamped;
  result.frames = conversion.frames.bytes;
  return result;
}

void check_splits(const ClientFormat& from, const FrameType& to, std::size_t frames,
                  std::mt19937& random) {
  const auto bytes = test::noise(from, frames, random);
  const Result whole = of_pieces(from, to, bytes, random, bytes.size());
  Result small = of_pieces(from, to, bytes, random, 40);
  const Result large = of_pieces(from, to, bytes, random, 5000);
  CHECK(small.frames == whole.frames);
  CHECK(large.frames == whole.frames);
  CHECK(small.clamped == whole.clamped);
  CHECK(large.clamped == whole.clamped);
  for (const auto& [input, output] : large.progress)
    if (small.progress.contains(input)) CHECK(small.progress[input] == output);
}

}  // namespace

TEST_CASE("splits do not change frames, in every format and with every choice of channels") {
  std::mt19937 random(7);
  for (const SampleFormat format : formats)
    for (const Choice& choice : choices)
      for (const double rate : {8000.0, 16000.0, 44100.0})
        for (const Element element : {Element::s16, Element::f32}) {
          INFO(name_of(format) << " " << choice.client << " channels, " << rate);
          check_splits(
              {.format = format, .values = choice.client, .rate = rate, .channel = choice.channel},
              {.element = element, .values = choice.pipeline}, 2500, random);
        }
}

TEST_CASE("splits do not change frames of features") {
  std::mt19937 random(6);
  check_splits({.format = SampleFormat::f32le, .values = 3}, {.element = Element::f16, .values = 3},
               500, random);
}

TEST_CASE("splits do not change frames, at every rate") {
  std::mt19937 random(8);
  for (const double from : {8000.0, 11025.0, 16001.0, 22050.0, 48000.0, 191999.0, 192000.0})
    for (const double to : {8000.0, 16000.0, 44100.0, 48000.0}) {
      INFO(from << " to " << to);
      check_splits({.rate = from}, {.element = Element::f32, .rate = to}, 9000, random);
    }
}

TEST_CASE("a long message is converted in pieces, unless it is accepted or rejected as a whole") {
  const FrameType to{.rate = 16'000};
  const auto piece = [&](ClientFormat from, const std::vector<std::byte>& message) {
    return InputConverter(from, to).piece(message);
  };
  const std::vector<std::byte> zeros(64 * 1024);
  CHECK(piece({.format = SampleFormat::mulaw, .rate = 192'000}, zeros) == 1024);
  CHECK(piece({.format = SampleFormat::s16le, .rate = 192'000}, zeros) == 2048);
  CHECK(piece({.format = SampleFormat::s16le, .rate = 16'000}, zeros) == 16 * 1024);
  CHECK(piece({.format = SampleFormat::opus, .rate = 48'000}, zeros) == zeros.size());
  const std::vector<std::byte> packet(640);
  CHECK(piece({.format = SampleFormat::s16le, .rate = 16'000}, packet) == packet.size());
  auto infinite = zeros;
  infinite[zeros.size() - 1] = std::byte{0x7f}, infinite[zeros.size() - 2] = std::byte{0x80};
  CHECK(piece({.format = SampleFormat::f32le, .rate = 192'000}, zeros) == 4096);
  CHECK(piece({.format = SampleFormat::f32le, .rate = 192'000}, infinite) == infinite.size());
}

TEST_CASE("256 channels are resampled in small blocks") {
  std::mt19937 random(9);
  check_splits({.values = 256, .rate = 8000}, {.values = 256}, 200, random);
  check_splits({.values = 256, .rate = 44100}, {.values = 256}, 700, random);
  check_splits({.values = 256, .rate = 44100, .channel = MeanOfChannels{}}, {}, 700, random);
}
