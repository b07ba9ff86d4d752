// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace millrace {

// The times at which streams are sent `goaway`: spread evenly from `begin` to `end`, the first at
// `begin`. It has no clock and does no I/O. Confined to one thread.
class GoawaySchedule {
 public:
  GoawaySchedule(std::vector<StreamId> streams, Time begin, Time end)
      : streams_(std::move(streams)), begin_(begin), end_(end) {}

  // The streams that have become due since the last call. Valid as long as the schedule.
  std::span<const StreamId> take_due(Time now) {
    const std::size_t first = next_;
    while (next_ < streams_.size() && next_due() <= now) ++next_;
    return std::span(streams_).subspan(first, next_ - first);
  }

  // The time at which the next stream is due; `end` if every stream has been due.
  Time next_due() const {
    if (next_ == streams_.size()) return end_;
    const double part = static_cast<double>(next_) / static_cast<double>(streams_.size());
    return begin_ + Duration(static_cast<Duration::rep>(
                        part * static_cast<double>((end_ - begin_).count())));
  }

 private:
  const std::vector<StreamId> streams_;
  const Time begin_, end_;
  std::size_t next_ = 0;  // index of the next stream
};

}  // namespace millrace
