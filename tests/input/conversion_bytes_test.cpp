// SPDX-License-Identifier: Apache-2.0
#include "input/conversion_bytes.h"

#include <malloc.h>

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/input/conversion.h"
#include "tests/input/opus_audio.h"
#include "tests/support/allocations.h"

using namespace millrace;
using test::opus;

namespace {

constexpr std::size_t kib = 1024;

// Writes over the same memory again and again.
class Overwritten : public FrameSink {
 public:
  explicit Overwritten(const FrameType& type)
      : memory_(1000 * type.bytes()), frame_(type.bytes()) {}
  MutableBytes writable(std::size_t frames) override {
    return MutableBytes(memory_).first(std::min<std::size_t>(frames, 1000) * frame_);
  }
  void append(std::size_t) override {}

 private:
  std::vector<std::byte> memory_;
  const std::size_t frame_;
};

// Bytes that the allocator has given to the program and to the libraries.
std::size_t allocated() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

std::vector<std::vector<std::byte>> messages_of(const ClientFormat& from) {
  if (from.format == SampleFormat::opus)
    return test::opus_packets(10, 20, static_cast<int>(from.values));
  std::mt19937 random(1);
  std::vector<std::vector<std::byte>> messages;
  for (int i = 0; i < 4; ++i)
    messages.push_back(test::noise(from, static_cast<std::size_t>(from.rate / 10), random));
  messages.back().pop_back();  // part of a frame
  return messages;
}

std::size_t measured(const ClientFormat& from, const FrameType& to) {
  const auto messages = messages_of(from);
  Overwritten frames(to);
  const std::size_t before = allocated();
  InputConverter converter(from, to);
  for (const auto& message : messages) (void)converter.convert(message, frames);
  (void)converter.drain(0, frames);
  for (const auto& message : messages) (void)converter.convert(message, frames);
  return allocated() - before;
}

}  // namespace

TEST_CASE("a converter allocates no more than its bound") {
  for (const double from : {8000.0, 11025.0, 15999.0, 22050.0, 32000.0, 44100.0, 48000.0, 88200.0,
                            96000.0, 176400.0, 191999.0, 192000.0})
    for (const double to : {8000.0, 16000.0, 24000.0, 44100.0, 48000.0})
      for (const std::uint32_t channels : {1u, 4u}) {
        const ClientFormat client{.values = channels, .rate = from};
        const FrameType type{.values = channels, .rate = to};
        INFO(from << " to " << to << ", " << channels << " channels");
        CHECK(measured(client, type) <= conversion_bytes(client, type));
        CHECK(conversion_bytes(client, type) <= most_conversion_bytes(type));
      }
}

TEST_CASE("a decoder of Opus allocates no more than its bound") {
  for (const double rate : {8000.0, 16000.0, 44100.0, 48000.0}) {
    const FrameType mono{.rate = rate}, stereo{.values = 2, .rate = rate};
    CHECK(measured(opus(1), mono) <= conversion_bytes(opus(1), mono));
    CHECK(measured(opus(2), stereo) <= conversion_bytes(opus(2), stereo));
    CHECK(conversion_bytes(opus(2), stereo) <= most_conversion_bytes(stereo));
    CHECK(conversion_bytes(opus(2, MeanOfChannels{}), mono) <= most_conversion_bytes(mono));
  }
  CHECK(conversion_bytes(opus(2, MeanOfChannels{}), {}) <= 28 * kib);
}

TEST_CASE("a resampler of libspeexdsp takes at most 16 KiB per channel") {
  for (const double from : {8000.0, 11025.0, 22050.0, 32000.0, 48000.0, 96000.0, 192000.0})
    CHECK(measured({.rate = from}, {}) <= 16 * kib);
  CHECK(measured({.rate = 192000}, {.rate = 8000}) <= 16 * kib + 512);
}

TEST_CASE("without a change of rate a converter takes little") {
  CHECK(most_conversion_bytes({.values = 80, .rate = 100, .features = true}) <= kib);
  CHECK(conversion_bytes({.values = 2, .channel = MeanOfChannels{}}, {}) <= kib);
}

TEST_CASE("messages allocate nothing in steady state") {
  const ClientFormat clients[] = {
      {.format = SampleFormat::mulaw, .rate = 8000},
      {.format = SampleFormat::f32le, .values = 2, .rate = 16000, .channel = MeanOfChannels{}},
      {.format = SampleFormat::s24le, .values = 3, .rate = 48000, .channel = OneChannel{2}},
      {.rate = 44100},
      opus(1),
      opus(2, MeanOfChannels{})};
  for (const ClientFormat& client : clients)
    for (const double rate : {16000.0, 44100.0}) {
      const FrameType type{.rate = rate};
      const auto messages = messages_of(client);
      Overwritten frames(type);
      InputConverter converter(client, type);
      const auto all = [&] {
        for (const auto& message : messages) (void)converter.convert(message, frames);
      };
      all();
      all();
      const std::size_t before = test::allocations(), bytes = allocated();
      all();
      CHECK(test::allocations() == before);
      CHECK(allocated() == bytes);
    }
}
