// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/event.h"
#include "chunker/row.h"

namespace millrace {

// Where a chunker is in its segment, followed from its events and rows. Pure. Confined to one
// thread.
class SegmentProgress {
 public:
  enum class Began : std::uint8_t { nothing, segment, run };

  // An event has entered the chunker. Returns what has begun.
  Began added(const Event& event) {
    using Kind = Event::Kind;
    switch (event.kind) {
      case Kind::open:
      case Kind::size: return Began::nothing;
      case Kind::frames: frames_ += event.count; return Began::nothing;
      case Kind::flush: closing_ = Began::segment; return Began::nothing;
      case Kind::gap:
        closing_ = Began::run;
        // A segment without frames has not begun: there is nothing to end, and no row follows.
        return frames_ == 0 ? begin() : Began::nothing;
      case Kind::reset: closing_ = Began::run; return Began::nothing;
      case Kind::end:
      case Kind::abort: closing_ = Began::nothing; return Began::nothing;
    }
    return Began::nothing;
  }

  // The chunker has cut a row. Returns what begins after it.
  Began cut(const Row& row) {
    if (row.has_frames()) first_of_run_ = false;
    return row.is(flag::last) ? begin() : Began::nothing;
  }

  // The number of frames of the segment.
  std::uint64_t frames() const { return frames_; }
  // The next body is the first of its run.
  bool first_of_run() const { return first_of_run_; }

 private:
  Began begin() {
    if (closing_ == Began::run) {
      first_of_run_ = true;
    } else if (frames_ > 0) {
      first_of_run_ = false;  // even if the segment gave no row with frames
    }
    frames_ = 0;
    return closing_;
  }

  std::uint64_t frames_ = 0;
  bool first_of_run_ = true;
  Began closing_ = Began::run;  // begins after the next LAST row
};

}  // namespace millrace
