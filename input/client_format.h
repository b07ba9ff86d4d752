// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <variant>

#include "base/frame_type.h"
#include "input/sample_format.h"

namespace millrace {

// Which of a client's channels become the channel of the pipeline.
struct AllChannels {  // each channel of the client is one of the pipeline
  bool operator==(const AllChannels&) const = default;
};
struct OneChannel {
  std::uint32_t index = 0;
  bool operator==(const OneChannel&) const = default;
};
struct MeanOfChannels {
  bool operator==(const MeanOfChannels&) const = default;
};
using ChannelChoice = std::variant<AllChannels, OneChannel, MeanOfChannels>;

// The audio or the features that a client sends.
struct ClientFormat {
  SampleFormat format = SampleFormat::s16le;
  std::uint32_t values = 1;  // per frame: channels of audio, dim of features
  double rate = 16000;       // frames per second; for Opus 48000
  ChannelChoice channel = AllChannels{};
  bool operator==(const ClientFormat&) const = default;
};

// The audio that the service converts.
constexpr std::uint32_t least_client_rate = 8000, greatest_client_rate = 192'000;
constexpr std::uint32_t most_client_channels = 256;
inline bool is_convertible_rate(double rate) {
  return rate >= least_client_rate && rate <= greatest_client_rate && rate == std::floor(rate);
}

// The format of a client whose frames are those of the pipeline, with values in `format`.
constexpr ClientFormat format_of(SampleFormat format, const FrameType& frames) {
  return {.format = format, .values = frames.values, .rate = frames.rate};
}

}  // namespace millrace
