// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/frame_type.h"
#include "input/sample_format.h"

namespace millrace::load {

// The format and rate that the simulated clients send. The service converts them to the pipeline's.
struct SentAudio {
  SampleFormat format = SampleFormat::s16le;
  double rate = 16'000;  // frames per second; for Opus that of the pipeline

  bool is_opus() const { return format == SampleFormat::opus; }
  bool operator==(const SentAudio&) const = default;
};

// The format and rate of clients whose frames are those of the pipeline: s16 for audio, f32 for
// features. Only the type of their values may be converted.
constexpr SentAudio plain(const FrameType& type) {
  return {.format = default_format(type.features), .rate = type.rate};
}

}  // namespace millrace::load
