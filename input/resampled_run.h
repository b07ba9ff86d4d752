// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/frame_type.h"
#include "input/frame_sink.h"
#include "input/resamplers/resampler.h"
#include "input/value_kernels.h"

namespace millrace {

// Converts the rate of floats and appends them as frames of the pipeline. Counts the frames since
// the last drain(), so that exactly the frames of their time are there after the next one.
//
// Confined to one thread.
class ResampledRun {
 public:
  // The most values that append() takes at once.
  static constexpr std::size_t most_values = 2048;

  // Throws std::bad_alloc.
  ResampledRun(const Rates& rates, const FrameType& to);

  // `frames` frames with the pipeline's channels. Requires: at most most_values values.
  Appended append(const float* from, std::size_t frames, FrameSink& to);

  // See InputConverter::drain().
  Appended drain(std::uint64_t before, FrameSink& to);

 private:
  Appended write(const float* from, std::size_t frames, FrameSink& to);

  const Rates rates_;
  const std::size_t channels_;
  const std::size_t frame_bytes_;
  const ValueKernel encode_;
  std::unique_ptr<Resampler> resampler_;
  std::uint64_t taken_ = 0;  // frames since the last drain
  std::uint64_t given_ = 0;  // frames of the pipeline since then
  bool drained_ = false;     // the resampler has to begin anew
};

}  // namespace millrace
