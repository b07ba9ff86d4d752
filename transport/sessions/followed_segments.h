// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "base/result_head.h"
#include "base/ring.h"

namespace millrace {

// The segments of a stream, for a protocol that reports each of them: the one in progress, and
// those that have ended and whose LAST rows are not done. `Segment` is what the protocol keeps of
// one. A segment is finished once, in order, when its LAST row has a result or is done without one.
// Its functions are those of ClientOutput. Confined to one thread.
template <class Segment>
class FollowedSegments {
 public:
  struct Ended {
    Segment segment;
    SegmentEnd at;
  };

  explicit FollowedSegments(Segment first) : current_(std::move(first)) {}

  // The segment in progress: rows are cut from it.
  Segment& current() { return current_; }

  // No segment that has ended waits for its LAST row.
  bool all_finished() const { return ended_.empty(); }

  // The segment in progress has ended, and `next` begins.
  void end(const SegmentEnd& at, Segment next) {
    ended_.push_back({std::exchange(current_, std::move(next)), at});
  }

  // Finishes the segments before that of the row with this number, by calls of finish(Ended&).
  // Returns the segment of that row, if it has ended; null: it is the one in progress.
  template <class Finish>
  Ended* of(std::uint64_t seq, Finish finish) {
    while (!ended_.empty() && ended_.front().at.seq < seq) finish_first(finish);
    return ended_.empty() ? nullptr : &ended_.front();
  }
  // The result of the LAST row of the first segment that has ended was given.
  void pop() { (void)ended_.pop_front(); }
  // Finishes the segments within the first `frames` frames.
  template <class Finish>
  void settled(std::uint64_t frames, Finish finish) {
    while (!ended_.empty() && ended_.front().at.position <= frames) finish_first(finish);
  }
  // Finishes all segments that have ended.
  template <class Finish>
  void finish_all(Finish finish) {
    while (!ended_.empty()) finish_first(finish);
  }

 private:
  template <class Finish>
  void finish_first(Finish finish) {
    Ended first = ended_.pop_front();
    finish(first);
  }

  Ring<Ended> ended_;
  Segment current_;
};

}  // namespace millrace
