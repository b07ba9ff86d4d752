// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace millrace {

// Converts floats from one rate to another, in pieces of any length. Frames come out later than
// they went in, by the delay of the filter; none comes out before the frame of its time went in.
// Values do not depend on the pieces. Confined to one thread.
class Resampler {
 public:
  virtual ~Resampler() = default;

  struct Step {
    std::size_t taken = 0;  // frames of `from`
    std::size_t given = 0;  // frames of `to`
  };
  // Converts at most `frames` frames with interleaved channels into at most `room` frames. Gives
  // all that it can if it takes all frames and given < room. Requires: room for eight frames, so
  // that each call takes or gives some.
  virtual Step convert(const float* from, std::size_t frames, float* to, std::size_t room) = 0;

  // The next frame is converted like the first of a stream.
  virtual void begin_anew() = 0;
};

// Rates in frames per second.
struct Rates {
  std::uint32_t from = 16000;
  std::uint32_t to = 16000;
  bool operator==(const Rates&) const = default;
};

// The frames after the conversion of `frames` frames: ⌊frames · to / from⌋, without overflow.
constexpr std::uint64_t converted_frames(std::uint64_t frames, const Rates& rates) {
  return frames / rates.from * rates.to + frames % rates.from * rates.to / rates.from;
}

// A resampler of the library that the table assigns to these rates. Throws std::bad_alloc.
std::unique_ptr<Resampler> open_resampler(const Rates& rates, std::uint32_t channels);

// A bound of the bytes that it allocates.
std::size_t resampler_bytes(const Rates& rates, std::uint32_t channels);

}  // namespace millrace
