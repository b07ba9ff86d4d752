// SPDX-License-Identifier: Apache-2.0
#include "input/conversion_bytes.h"

#include <algorithm>

#include "input/opus_packets.h"
#include "input/resamplers/resampler.h"

namespace millrace {
namespace {

constexpr std::size_t own_bytes = 512;  // the converter and its parts without the libraries

std::uint32_t whole(double rate) { return static_cast<std::uint32_t>(rate); }

// libspeexdsp needs most memory just below each power of two: there the filter is long, and its
// table has not yet fewer phases.
std::size_t most_resampler_bytes(const FrameType& to) {
  std::size_t most = 0;
  const auto consider = [&](double from) {
    const double rate = std::clamp<double>(from, least_client_rate + 1, greatest_client_rate - 1);
    if (rate != to.rate)
      most = std::max(most, resampler_bytes({whole(rate), whole(to.rate)}, to.values));
  };
  for (const double ratio : {0, 2, 4, 8, 16, 32}) consider(ratio * to.rate - 1);
  for (const double rate : {16'000, 44'100, 48'000}) consider(rate);  // to libsoxr
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
  const std::uint32_t channels = to.values == 1 ? most_client_channels : to.values;
  const std::size_t samples = own_bytes + size_of(SampleFormat::f32le) * channels;
  std::size_t most = samples + most_resampler_bytes(to);
  if (to.values <= 2) {
    const ClientFormat opus{.format = SampleFormat::opus, .values = 2, .channel = MeanOfChannels{}};
    most = std::max(most, conversion_bytes(opus, to));
  }
  return most;
}

}  // namespace millrace
