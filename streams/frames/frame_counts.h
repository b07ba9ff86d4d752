// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// Converts counts of frames, from the start of a stream, between the rate of its input and the rate
// of its pipeline. Counts of a part of a stream are differences of these counts, so that rounding
// errors do not add up. Exact; results beyond 64 bits become the largest number of 64 bits. Equal
// rates, which may be fractional, are the identity. Immutable.
class FrameCounts {
 public:
  // Rates in frames per second. Requires: they are equal, or both are whole and positive.
  FrameCounts(double input_rate, double pipeline_rate);

  // Equal rates.
  bool is_identity() const { return input_ == pipeline_; }
  // The position in the pipeline after this many frames of the input: ⌊n · p / c⌋.
  std::uint64_t position(std::uint64_t input_frames) const;
  // The most frames of the input after which the position is at most `position`.
  std::uint64_t input_frames(std::uint64_t position) const;

 private:
  std::uint32_t input_ = 1, pipeline_ = 1;  // the ratio of the rates, in lowest terms
};

}  // namespace millrace
