// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace millrace {

// Spreads messages to streams evenly from `begin` to `end`: the first is due at `begin`. Pure.
// Confined to one thread.
class Notice {
 public:
  Notice(std::vector<StreamId> streams, Time begin, Time end)
      : streams_(std::move(streams)), begin_(begin), end_(end) {}

  // The streams whose messages are due, each once. Valid until the next call.
  std::span<const StreamId> take_due(Time now) {
    const std::size_t first = taken_;
    while (taken_ < streams_.size() && next() <= now) ++taken_;
    return std::span(streams_).subspan(first, taken_ - first);
  }

  // When the next message is due; `end` if there is none.
  Time next() const {
    if (taken_ == streams_.size()) return end_;
    const double part = static_cast<double>(taken_) / static_cast<double>(streams_.size());
    return begin_ + Duration(static_cast<Duration::rep>(
                        part * static_cast<double>((end_ - begin_).count())));
  }

 private:
  const std::vector<StreamId> streams_;
  const Time begin_, end_;
  std::size_t taken_ = 0;
};

}  // namespace millrace
