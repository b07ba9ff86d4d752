// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/instants.h"
#include "base/ring.h"
#include "base/time.h"
#include "streams/stats.h"

namespace millrace {

// The results of one stream that were given to its client and are not written to the socket yet, in
// order: counts them, and measures how long each took. Confined to one thread.
class UnwrittenResults {
 public:
  // `stats` must outlive it.
  explicit UnwrittenResults(StreamStats& stats) : stats_(stats) {}

  bool empty() const { return waiting_.empty(); }

  void add(const Instants& at) {
    waiting_.push_back(at);
    stats_.results.add(1);
  }

  // The oldest `results` of them were written. Requires: there are as many.
  void written(std::size_t results, Time now) {
    for (; results > 0; --results) {
      Instants at = waiting_.pop_front();
      at.written = now;
      stats_.written(at);
      stats_.results.add(-1);
    }
    // The memory that a burst needed is given back.
    if (waiting_.empty() && waiting_.capacity() > kept_) waiting_ = {};
  }

  // The client never gets those that are left.
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
