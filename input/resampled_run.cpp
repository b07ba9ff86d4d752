// SPDX-License-Identifier: Apache-2.0
#include "input/resampled_run.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace millrace {

ResampledRun::ResampledRun(const Rates& rates, const FrameType& to)
    : rates_(rates),
      channels_(to.values),
      frame_bytes_(to.bytes()),
      encode_(value_kernel(SampleFormat::f32le, to.element)),
      resampler_(open_resampler(rates, to.values)) {}

Appended ResampledRun::append(const float* from, std::size_t frames, FrameSink& to) {
  std::array<float, most_values> converted;
  const std::size_t room = converted.size() / channels_;
  taken_ += frames;
  // Here and not in drain(): libsoxr designs its filter again, and most runs are the last.
  if (std::exchange(drained_, false)) resampler_->begin_anew();
  Appended total;
  Resampler::Step step;
  do {
    step = resampler_->convert(from, frames, converted.data(), room);
    from += step.taken * channels_;
    frames -= step.taken;
    total += write(converted.data(), step.given, to);
  } while (frames > 0 || step.given == room);
  assert(given_ <= converted_frames(taken_, rates_));
  return total;
}

// The resampler's last frames come out when zeros follow them, few at a time: often one frame is
// due. It always has enough: a position is rounded down, and differs by at most one from the
// position of the run alone.
Appended ResampledRun::drain(std::uint64_t before, FrameSink& to) {
  constexpr std::size_t at_once = 64;
  static constexpr std::array<float, most_values> zeros{};
  std::array<float, most_values> converted;
  const std::size_t room = converted.size() / channels_;
  const std::uint64_t due =
      converted_frames(before + taken_, rates_) - converted_frames(before, rates_);
  if (taken_ == 0) return {};
  Appended total;
  while (given_ < due) {
    const Resampler::Step step =
        resampler_->convert(zeros.data(), std::min(at_once, room), converted.data(), room);
    total += write(converted.data(), std::min<std::uint64_t>(step.given, due - given_), to);
  }
  drained_ = true;
  taken_ = given_ = 0;
  return total;
}

Appended ResampledRun::write(const float* from, std::size_t frames, FrameSink& to) {
  Appended total{.frames = frames};
  given_ += frames;
  while (frames > 0) {
    const MutableBytes writable = to.writable(frames);
    const std::size_t count = writable.size() / frame_bytes_;
    const std::size_t values = count * channels_;
    total.clamped += encode_(reinterpret_cast<const std::byte*>(from), writable.data(), values);
    to.append(count);
    from += values;
    frames -= count;
  }
  return total;
}

}  // namespace millrace
