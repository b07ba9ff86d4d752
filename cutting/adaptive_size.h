// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "chunker/body_size.h"

namespace millrace {

// The control law of the rule `adaptive`: the size of each body of one stream, from the time for
// which the rows of this stream wait for a worker.
//
// - Up: when the wait is above limit_up(), which waits of a pipeline that copes do not reach. By
//   several sizes if the wait is far above it. While the queue of an earlier change drains, only if
//   the wait has grown since. A larger body begins only at a multiple of its size, counted from the
//   start of the stream. So the bodies of many streams that change together do not end together.
// - Down by one size: when the wait has stayed below limit_down() for a quiet time.
//
// Whether a smaller size copes is known only by trying. All streams of a lane see the same waits,
// and try at about the same time: one in 32 goes first, each moment twice as many, and at half of
// the streams all others. As soon as the waits become too long, the others stay, and those return.
// The quiet time before the next try is then doubled. The stream's name decides when it is its
// turn.
//
// Time is counted in frames. Pure. Confined to one thread. Does not allocate.
class AdaptiveSize {
 public:
  struct Pipeline {
    const SizeList& sizes;  // at most most_sizes; outlives this
    Duration max_wait;      // as in BatchRule
    double rate;            // frames per second
  };

  // The first size is `begin`, one of the sizes. `stream` is the stream's name.
  AdaptiveSize(const Pipeline& pipeline, std::string_view stream, std::uint32_t begin);

  // The size of the body that begins now. `position` is the position of its first frame, `waited`
  // is how long rows of the stream wait.
  std::uint32_t next(Duration waited, std::uint64_t position);

  // The wait above which the size with this number is too small.
  Duration limit_up(std::size_t index) const;
  // The wait below which it may be too large. Requires: index >= 1.
  Duration limit_down(std::size_t index) const;

 private:
  void go_up(Duration waited, std::uint64_t position);
  void has_failed(std::size_t index);
  void wait_for_turn(std::uint64_t quiet_from);
  Duration quiet_time() const;
  std::uint64_t frames(Duration time) const;
  Duration time(double frames) const;

  const Pipeline pipeline_;
  const std::uint64_t key_;                          // key of the numbers drawn
  std::size_t index_;                                // number of the size
  std::array<std::uint8_t, most_sizes> failures_{};  // tries of each size that failed, one by one
  std::uint64_t quiet_from_ = 0;                     // when the quiet time began
  std::uint64_t turn_ = 0;          // frames from its end to the stream's own change
  std::uint64_t draws_ = 0;         // numbers drawn for turn_
  std::uint64_t before_ = 0;        // position of the body before
  Duration waited_at_up_{};         // at the last change up, while its queue drains
  std::uint64_t settle_until_ = 0;  // end of the time that is allowed for this
};

}  // namespace millrace
