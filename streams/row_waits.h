// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "base/instants.h"
#include "base/time.h"
#include "streams/outstanding_rows.h"
#include "streams/stream_settings.h"

namespace millrace {

// How long the rows of one stream wait for a worker: adaptive sizes depend on it. Confined to one
// thread.
class RowWaits {
 public:
  explicit RowWaits(const StreamSettings& settings) : needs_notice_after_(shortest_of(settings)) {}

  // A row is done.
  void done(const Instants& at) {
    taken_after_ = at.taken - at.ready;
    done_after_ = at.done - at.ready;
  }

  // The larger of two times: from ready to taken, of the row that a worker took last; and twice the
  // time since the oldest row that is in no batch was ready. Twice, because this row will also wait
  // for the batch before its own.
  Duration longest(const OutstandingRows& rows, Time now) const {
    const auto oldest = rows.oldest_ready();
    return std::max(taken_after_, oldest ? 2 * (now - *oldest) : Duration{});
  }

  // True if the next row needs ReadyRow::notify_batched, so that longest() does not count the time
  // in its batch. While rows are done in less than the smallest size, that makes no difference: the
  // control law does not depend on so short waits.
  bool needs_notice() const { return done_after_ > needs_notice_after_; }

 private:
  static Duration shortest_of(const StreamSettings& settings) {
    const SizeRule& rule = settings.chunk.sizes;
    if (rule.by != SizeRule::By::adaptive || settings.requested_size) return Duration::max();
    const double seconds = rule.sizes.smallest() / settings.type.rate;
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }

  const Duration needs_notice_after_;
  Duration taken_after_{}, done_after_{};  // those of the row that was done last
};

}  // namespace millrace
