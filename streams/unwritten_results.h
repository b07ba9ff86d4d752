// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/instants.h"
#include "base/ring.h"
#include "base/time.h"
#include "streams/stats/stats.h"

namespace millrace {

// The results of one stream, and the messages of its workers, that are queued for its client and
// not yet written to the socket, in order. Counts results and measures their stages; adds up the
// room of messages. Confined to one thread.
class UnwrittenResults {
 public:
  // `stats` must outlive it.
  explicit UnwrittenResults(StreamStats& stats) : stats_(stats) {}

  bool empty() const { return waiting_.empty(); }

  void add(const Instants& at) {
    waiting_.push_back({at});
    stats_.results.add(1);
    ++results_;
  }
  // `room`: the bytes that it uses of the stream's room, more than 0.
  void add_message(std::uint32_t room) { waiting_.push_back({{}, room}); }

  // The oldest `count` results and messages were written. Returns the room of these messages.
  // Requires: at least that many are queued.
  std::uint32_t written(std::size_t count, Time now) {
    std::uint32_t room = 0;
    for (; count > 0; --count) {
      Unwritten one = waiting_.pop_front();
      room += one.room;
      if (one.room > 0) continue;
      one.at.written = now;
      stats_.written(one.at);
      stats_.results.add(-1);
      --results_;
    }
    // Free the memory of a burst.
    if (waiting_.empty() && waiting_.capacity() > kept_) waiting_ = {};
    return room;
  }

  // The queued results and messages will not be delivered. Returns the room of the messages.
  std::uint32_t drop(ResultLoss why) {
    std::uint32_t room = 0;
    while (!waiting_.empty()) room += waiting_.pop_front().room;
    waiting_ = {};
    stats_.dropped[why].add(results_);
    stats_.results.add(-static_cast<std::int64_t>(std::exchange(results_, 0)));
    return room;
  }

 private:
  static constexpr std::size_t kept_ = 64;
  struct Unwritten {
    Instants at{};           // when a result was in each stage
    std::uint32_t room = 0;  // the room that a message uses; 0: a result
  };

  StreamStats& stats_;
  Ring<Unwritten> waiting_;
  std::size_t results_ = 0;  // in waiting_
};

}  // namespace millrace
