// SPDX-License-Identifier: Apache-2.0
#include "input/conversion_bytes.h"

#include <algorithm>
#include <array>
#include <variant>

#include "input/opus_packets.h"
#include "input/resamplers/resampler.h"

namespace millrace {
namespace {

constexpr std::size_t own_bytes = 512;  // the converter and its parts without the libraries
constexpr std::uint32_t least_rate = 8000, greatest_rate = 192'000, most_channels = 256;

std::uint32_t whole(double rate) { return static_cast<std::uint32_t>(rate); }

// The bytes of the resampler need most where the filter's table has most phases for its length:
// libspeexdsp halves them above each power of two.
std::size_t most_resampler_bytes(const FrameType& to) {
  std::size_t most = 0;
  const auto consider = [&](double from) {
    const auto rate = std::clamp(from, double{least_rate}, double{greatest_rate});
    if (rate != to.rate)
      most = std::max(most, resampler_bytes({whole(rate), whole(to.rate)}, to.values));
  };
  for (const double ratio : {0.0, 2.0, 4.0, 8.0, 16.0, 32.0}) consider(ratio * to.rate);
  for (const double rate : {16'000.0, 44'100.0, 48'000.0, double{greatest_rate}}) consider(rate);
  return most;
}

}  // namespace

std::size_t conversion_bytes(const ClientFormat& from, const FrameType& to) {
  std::size_t bytes = own_bytes + size_of(from.format) * from.values;
  double rate = from.rate;
  if (from.format == SampleFormat::opus) {
    rate = OpusPackets::rate_for(to.rate);
    bytes += OpusPackets::bytes(from.values);
  }
  if (rate != to.rate) bytes += resampler_bytes({whole(rate), whole(to.rate)}, to.values);
  return bytes;
}

std::size_t most_conversion_bytes(const FrameType& to) {
  const ClientFormat values{.format = SampleFormat::f32le, .values = to.values, .rate = to.rate};
  if (to.features) return conversion_bytes(values, to);
  const std::uint32_t channels = to.values == 1 ? most_channels : to.values;
  const std::size_t samples = own_bytes + size_of(SampleFormat::f32le) * channels;
  std::size_t most = samples + most_resampler_bytes(to);
  if (to.values <= 2) {
    const ClientFormat opus{.format = SampleFormat::opus, .values = 2, .channel = MeanOfChannels{}};
    most = std::max(most, conversion_bytes(opus, to));
  }
  return most;
}

}  // namespace millrace
