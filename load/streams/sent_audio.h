// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/frame_type.h"

namespace millrace::load {

// A format that the simulated clients send.
struct SentFormat {
  std::string_view name;    // the value of the parameter `format`
  std::size_t value_bytes;  // 0: Opus, each message is a packet
};

inline constexpr std::array<SentFormat, 6> sent_formats{
    {{"s16le", 2}, {"s24le", 3}, {"f32le", 4}, {"mulaw", 1}, {"alaw", 1}, {"opus", 0}}};

// The format and rate that the simulated clients send. The service converts them to the pipeline's.
struct SentAudio {
  SentFormat format = sent_formats[0];
  double rate = 16'000;  // frames per second; for Opus that of the pipeline

  bool is_opus() const { return format.value_bytes == 0; }
  bool operator==(const SentAudio& other) const {
    return format.name == other.format.name && rate == other.rate;
  }
};

// The format and rate of clients whose frames are those of the pipeline: s16 for audio, f32 for
// features. Only the type of their values may be converted.
constexpr SentAudio plain(const FrameType& type) {
  return {.format = sent_formats[type.features ? 2 : 0], .rate = type.rate};
}

constexpr std::optional<SentFormat> sent_format_named(std::string_view name) {
  const auto found = std::ranges::find(sent_formats, name, &SentFormat::name);
  return found == sent_formats.end() ? std::nullopt : std::optional(*found);
}

}  // namespace millrace::load
