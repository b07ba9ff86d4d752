// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace millrace::load {

// When the streams send within the period of a packet.
enum class Phase : std::uint8_t {
  uniform,  // evenly spread: no two at the same time
  random,   // at random times, like real clients
  step,     // all at the same time, the worst case
};

// The amount of traffic and its times. The same plan gives the same traffic.
struct LoadPlan {
  std::uint32_t streams = 100;                       // open at the same time
  Duration packet = std::chrono::milliseconds(100);  // length of a packet in signal, and its period
  Phase phase = Phase::uniform;
  Duration jitter{};  // longest random delay of a packet
  // Mean lifetime of a stream, which another one replaces. Nullopt: the whole run.
  std::optional<Duration> life = {};
  // Least audio between two commits of a stream, which also commits at its end. Nullopt: none.
  std::optional<Duration> commit = {};
  double cuts = 0;  // connections that are cut, per stream and second; the streams resume
  // Time in the measured time at which all connections are cut at once.
  std::optional<Duration> cut_all = {};
  double aborts = 0;  // fraction of streams with a life that disconnect without an end
  Duration warm_up = std::chrono::seconds(1);  // before the measured time: fills caches and pools
  Duration length = std::chrono::seconds(10);  // the measured time
  Duration window = std::chrono::hours(1);     // parts of it with their own figures
  std::uint64_t seed = 1;
};

}  // namespace millrace::load
