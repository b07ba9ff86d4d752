// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/result_head.h"
#include "base/ring.h"

namespace millrace {

// The places between the rows of one stream from which it can be continued, and the commands of its
// client that had their effect before each. Everything before a place is done.
//
// A model has a state for the current segment. So the place is the begin of the segment of the
// first row that is not done, as long as the segment is short: if the state is lost, the segment is
// computed again. In a longer segment, it is the first row that is not done.
//
// Confined to one thread. Does not allocate in steady state.
class alignas(64) ResumePoints {
 public:
  struct Place {
    std::uint64_t seq = 0;       // number of the row
    std::uint64_t begin = 0;     // position of the first frame that rows from here on need
    std::uint64_t commands = 0;  // commands with an effect before it
    bool operator==(const Place&) const = default;
  };

  // `longest`: the most frames of a short segment.
  ResumePoints(const ResumePoint& start, std::uint64_t longest)
      : segment_{start.seq, start.begin, start.commands},
        longest_(longest),
        next_{segment_, true},
        commands_(start.commands),
        start_(segment_) {}

  // A command has arrived. `waits`: its event waits before the chunker; otherwise it was rejected.
  void received(bool waits) {
    if (waits) waiting_.push_back(commands_);
    ++commands_;
  }
  std::uint64_t commands() const { return commands_; }  // that have arrived

  // The event of the oldest waiting command has entered the chunker. `closes`: it ends a segment,
  // whose last row is not cut yet.
  void fed(bool closes) {
    if (waiting_.empty()) return;
    if (closes) closing_ = waiting_.front();
    waiting_.pop_front();
  }

  // A row was cut. `begin`: the position of the first frame that later rows need. A command that
  // ends a segment has its effect with the last row of it.
  void cut(std::uint64_t seq, std::uint64_t begin, bool is_last) {
    if (is_last) closing_ = no_command;
    const std::uint64_t fed = waiting_.empty() ? commands_ : waiting_.front();
    places_.push_back(next_);
    next_ = {{seq + 1, begin, std::min(closing_, fed)}, is_last};
  }
  // The oldest row that was cut is done.
  void done() {
    places_.pop_front();
    if (first().begins_segment) segment_ = first().place;
  }

  // Where the stream was opened.
  const Place& start() const { return start_; }
  // The number of the next row that is cut.
  std::uint64_t next_row() const { return next_.place.seq; }
  // `position`: that of the frames in the chunker.
  const Place& place(std::uint64_t position) const {
    return position - segment_.begin <= longest_ ? segment_ : first().place;
  }

 private:
  struct Entry {
    Place place;
    bool begins_segment = false;
  };

  const Entry& first() const { return places_.empty() ? next_ : places_.front(); }

  static constexpr auto no_command = std::numeric_limits<std::uint64_t>::max();

  // Each row uses all but the last, in two lines of the cache.
  Place segment_;  // the begin of the segment of the first row that is not done
  const std::uint64_t longest_;
  Entry next_;                          // before the next row
  Ring<Entry> places_;                  // before the rows that are not done
  Ring<std::uint64_t> waiting_;         // numbers of commands whose events wait
  std::uint64_t closing_ = no_command;  // number of the command that ends the current segment
  std::uint64_t commands_;
  const Place start_;
};

}  // namespace millrace
