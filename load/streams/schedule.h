// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.h"
#include "load/streams/plan.h"

namespace millrace::load {

// When which packet is due, and how long streams live: functions of the plan's seed, so that who
// sends and who checks agree without a word. A *place* is one of the streams at a time; its packets
// are numbered from 0 through all the streams that hold it one after another.
//
// Immutable but for its start, and for any thread: whoever sees what was sent sees when it began.
class Schedule {
 public:
  explicit Schedule(const LoadPlan& plan);

  // The first packets are due soon after `now`.
  void start(Time now) { start_ = now; }

  Time due(std::uint32_t place, std::uint64_t packet) const;
  // The first packet of the place that is due at `time` or later.
  std::uint64_t first_from(std::uint32_t place, Time time) const;

  // How many packets the stream has that begins with this one; at least 1. And whether it vanishes
  // then, instead of ending.
  std::uint64_t packets_of_life(std::uint32_t place, std::uint64_t first) const;
  bool vanishes(std::uint32_t place, std::uint64_t first) const;

  Time begin() const { return start_; }
  Time counted_from() const { return begin() + plan_.warm_up; }
  Time end() const { return counted_from() + plan_.length; }
  // Streams go on for a moment behind what counts: their ends are not to weigh on it.
  Time last() const { return end() + 2 * plan_.packet; }
  bool counts(Time due) const { return due >= counted_from() && due < end(); }
  // Of what is due then. Requires: it counts.
  std::size_t window_of(Time due) const {
    return static_cast<std::size_t>((due - counted_from()) / plan_.window);
  }
  std::size_t windows() const;

  const LoadPlan& plan() const { return plan_; }

 private:
  // Evenly distributed over [0, 1): the same for the same arguments.
  double draw(std::uint64_t what, std::uint64_t place, std::uint64_t packet) const;
  Time turn(std::uint32_t place, std::uint64_t packet) const;

  const LoadPlan plan_;
  std::atomic<Time> start_{};
};

}  // namespace millrace::load
