// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/instants.h"
#include "base/ring.h"
#include "base/time.h"
#include "streams/stats/stats.h"

namespace millrace {

// The results of one stream that are queued for its client and not yet written to the socket, in
// order. Counts them and measures their stages. Confined to one thread.
class UnwrittenResults {
 public:
  // `stats` must outlive it.
  explicit UnwrittenResults(StreamStats& stats) : stats_(stats) {}

  bool empty() const { return waiting_.empty(); }

  void add(const Instants& at) {
    waiting_.push_back(at);
    stats_.results.add(1);
  }

  // The oldest `results` results were written. Requires: at least that many are queued.
  void written(std::size_t results, Time now) {
    for (; results > 0; --results) {
      Instants at = waiting_.pop_front();
      at.written = now;
      stats_.written(at);
      stats_.results.add(-1);
    }
    // Free the memory of a burst.
    if (waiting_.empty() && waiting_.capacity() > kept_) waiting_ = {};
  }

  // The queued results will not be delivered.
  void drop(ResultLoss why) {
    stats_.dropped[why].add(waiting_.size());
    stats_.results.add(-static_cast<std::int64_t>(waiting_.size()));
    waiting_ = {};
  }

 private:
  static constexpr std::size_t kept_ = 64;

  StreamStats& stats_;
  Ring<Instants> waiting_;
};

}  // namespace millrace
