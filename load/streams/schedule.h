// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "load/streams/plan.h"

namespace millrace::load {

// How a connection is cut.
struct Cut {
  Time at{};
  bool resets = false;  // by a reset, after which the system drops what is on its way; else a close
  // Within the next packet, after this part of its message: 1 is directly after it. Nullopt: at
  // once.
  std::optional<double> part = {};
};

// When each packet is due, and how long streams live: functions of the plan's seed, so that the
// sender and the checker agree without communication. A *client* has one stream at a time; its
// packets are numbered from 0 across all its streams.
//
// Immutable after start(). Thread-safe.
class Schedule {
 public:
  explicit Schedule(const LoadPlan& plan);

  // The first packets are due soon after `now`.
  void start(Time now) { start_ = now; }

  Time due(std::uint32_t client, std::uint64_t packet) const;
  // The first packet of the client whose turn, its due time without jitter, is at `time` or later.
  std::uint64_t first_from(std::uint32_t client, Time time) const;

  // The number of packets of the stream that begins with packet `first`, at least 1; and whether it
  // then disconnects instead of ending.
  std::uint64_t packets_of_life(std::uint32_t client, std::uint64_t first) const;
  bool disconnects(std::uint32_t client, std::uint64_t first) const;

  // The cut of the client's connection with this number; `previous` is the time of the one before,
  // or of counted_from(). Nullopt: there are no further ones.
  std::optional<Cut> cut(std::uint32_t client, std::uint64_t number, Time previous) const;

  Time begin() const { return start_; }
  Time counted_from() const { return begin() + plan_.warm_up; }
  Time end() const { return counted_from() + plan_.length; }
  // Streams continue for two packets after the measured time, so that their ends do not affect it.
  Time last() const { return end() + 2 * plan_.packet; }
  bool counts(Time due) const { return due >= counted_from() && due < end(); }
  // The window of a due time. Requires: counts(due).
  std::size_t window_of(Time due) const {
    return static_cast<std::size_t>((due - counted_from()) / plan_.window);
  }
  std::size_t windows() const;

  const LoadPlan& plan() const { return plan_; }

 private:
  // A number uniformly distributed over [0, 1), a function of the seed and the arguments.
  double draw(std::uint64_t what, std::uint64_t client, std::uint64_t packet) const;
  Time turn(std::uint32_t client, std::uint64_t packet) const;

  const LoadPlan plan_;
  std::atomic<Time> start_{};
};

}  // namespace millrace::load
