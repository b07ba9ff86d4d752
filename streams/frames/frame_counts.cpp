// SPDX-License-Identifier: Apache-2.0
#include "streams/frames/frame_counts.h"

#include <cassert>
#include <limits>
#include <numeric>

namespace millrace {

namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t saturated(Wide count) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  return count > most ? most : static_cast<std::uint64_t>(count);
}

}  // namespace

FrameCounts::FrameCounts(double input_rate, double pipeline_rate) {
  if (input_rate == pipeline_rate) return;
  input_ = static_cast<std::uint32_t>(input_rate);
  pipeline_ = static_cast<std::uint32_t>(pipeline_rate);
  assert(input_ > 0 && input_ == input_rate);
  assert(pipeline_ > 0 && pipeline_ == pipeline_rate);
  const std::uint32_t common = std::gcd(input_, pipeline_);
  input_ /= common;
  pipeline_ /= common;
}

std::uint64_t FrameCounts::position(std::uint64_t input_frames) const {
  if (is_identity()) return input_frames;
  return saturated(Wide{input_frames} * pipeline_ / input_);
}

// n frames give a position of at most m if n · p < (m + 1) · c.
std::uint64_t FrameCounts::input_frames(std::uint64_t position) const {
  if (is_identity()) return position;
  return saturated(((Wide{position} + 1) * input_ - 1) / pipeline_);
}

}  // namespace millrace
