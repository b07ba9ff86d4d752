// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>

#include "tests/workers/lanes/lane_history.h"
#include "workers/lanes/lane_gauges.h"

namespace millrace::test {

// Compares the gauges of a pipeline's lanes with the waits of its rows (Little's law): if no row is
// left at the end of a history, the integral of a gauge over time is exactly the sum of the waits.
class QueueWatch {
 public:
  void add(StreamId stream, Time now) { waiting_[stream].push_back(now); }

  // Lets `time` pass without events.
  void pass(const Lanes& lanes, const BatchRule& rule, Duration time) {
    update_gauges(lanes, rule, stats_);
    batch_shown_ += stats_.items[LaneQueue::batch].value() * time;
    worker_shown_ += stats_.items[LaneQueue::worker].value() * time;
  }

  void read(const SortedEvents& events, Time now) {
    for (const SortedEvents::Done& done : events.done) {
      batch_waits_ += done.at.closed - done.at.ready;
      worker_waits_ += now - done.at.closed;
      waiting_.at(done.stream).pop_front();
    }
    for (const SortedEvents::Dropped& dropped : events.dropped) {
      for (const Time ready : waiting_[dropped.stream]) dropped_waits_ += now - ready;
      waiting_.erase(dropped.stream);
    }
  }

  void expect_little() const {
    LaneHistory::expect(
        batch_shown_ + worker_shown_ == batch_waits_ + worker_waits_ + dropped_waits_,
        "each row is in one gauge from when it is ready until it is done or dropped");
    if (dropped_waits_ > Duration{}) return;  // their events do not name the stage
    LaneHistory::expect(batch_shown_ == batch_waits_, "the gauge `batch` agrees with the waits");
    LaneHistory::expect(worker_shown_ == worker_waits_, "the gauge `worker` agrees with the waits");
  }

 private:
  LaneStats stats_;
  std::map<StreamId, std::deque<Time>> waiting_;  // when the rows that are not done were added
  Duration batch_shown_{}, worker_shown_{};
  Duration batch_waits_{}, worker_waits_{}, dropped_waits_{};
};

}  // namespace millrace::test
