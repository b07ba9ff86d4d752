// SPDX-License-Identifier: Apache-2.0
#include "commands/input/opus_source.h"

#include <opus/opus.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

using namespace millrace;

namespace {

// A tone of 1.007 s in f32le.
class Tone final : public AudioSource {
 public:
  explicit Tone(double rate, std::uint32_t channels)
      : format_{.format = SampleFormat::f32le, .rate = rate, .channels = channels} {}

  const AudioFormat& format() const override { return format_; }
  Result<std::optional<Bytes>, std::string> read(std::size_t most) override {
    values_.clear();
    for (; most > 0 && at_ < frames(); --most, ++at_)
      values_.insert(values_.end(), format_.channels, value(at_));
    return std::optional<Bytes>(std::as_bytes(std::span(values_)));
  }

  std::size_t frames() const { return static_cast<std::size_t>(format_.rate * 1.007); }
  float value(std::size_t frame) const {
    const double angle = 2 * std::numbers::pi * 440 * static_cast<double>(frame) / format_.rate;
    return static_cast<float>(0.5 * std::sin(angle));
  }

 private:
  const AudioFormat format_;
  std::size_t at_ = 0;
  std::vector<float> values_;
};

// The audio that libopus decodes from all packets, without the delay of the encoder.
std::vector<float> decoded(AudioSource& source, int rate, int channels) {
  std::vector<float> all, packet(static_cast<std::size_t>(rate * channels / 50));
  OpusDecoder* decoder = opus_decoder_create(rate, channels, nullptr);
  for (;;) {
    const auto read = source.read(0);
    REQUIRE((read && *read));
    if ((*read)->empty()) break;
    const auto* bytes = reinterpret_cast<const unsigned char*>((*read)->data());
    const int frames = opus_decode_float(decoder, bytes, static_cast<opus_int32>((*read)->size()),
                                         packet.data(), rate / 50, 0);
    REQUIRE(frames == rate / 50);
    all.insert(all.end(), packet.begin(), packet.end());
  }
  opus_decoder_destroy(decoder);
  all.erase(all.begin(), all.begin() + rate * channels * 13 / 2000);  // 6.5 ms
  return all;
}

}  // namespace

TEST_CASE("the packets of Opus contain all audio, to its last frame") {
  const int channels = GENERATE(1, 2);
  const int rate = GENERATE(8000, 16000, 48000);
  auto tone = std::make_unique<Tone>(rate, static_cast<std::uint32_t>(channels));
  const Tone& original = *tone;
  const auto source = OpusSource::open(std::move(tone));
  REQUIRE(source);
  CHECK((*source)->format().format == SampleFormat::opus);
  CHECK((*source)->format().rate == 48000);
  const std::vector<float> audio = decoded(**source, rate, channels);
  const std::size_t values = original.frames() * static_cast<std::size_t>(channels);
  REQUIRE(audio.size() >= values);
  double error = 0;
  for (std::size_t i = values - values / 20; i < values; ++i)  // the last 50 ms
    error += std::pow(audio[i] - original.value(i / static_cast<std::size_t>(channels)), 2);
  CHECK(std::sqrt(error / (static_cast<double>(values) / 20)) < 0.1);
}

TEST_CASE("audio of more than two channels, and rates without an encoder, are refused") {
  CHECK_FALSE(OpusSource::open(std::make_unique<Tone>(16000, 3)));
  CHECK_FALSE(OpusSource::open(std::make_unique<Tone>(44100, 1)));
}
