// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"

namespace millrace::load {

// Where in a packet's period the streams send.
enum class Phase : std::uint8_t {
  uniform,  // evenly spread: never two at once
  random,   // anywhere, as real clients
  step,     // all at the same moment, the worst case
};

constexpr std::optional<Phase> phase_named(std::string_view name) {
  if (name == "uniform") return Phase::uniform;
  if (name == "random") return Phase::random;
  if (name == "step") return Phase::step;
  return std::nullopt;
}

// How much traffic, and when. The same plan is the same traffic.
struct LoadPlan {
  std::uint32_t streams = 100;                       // at a time
  Duration packet = std::chrono::milliseconds(100);  // of signal in a message, and between two
  Phase phase = Phase::uniform;
  Duration jitter{};  // a packet is due up to so much later than its turn
  std::optional<Duration> life =
      {};             // of a stream, in the mean, then another comes; without: all of it
  double aborts = 0;  // of those whose life is over, the part that just vanishes
  Duration warm_up = std::chrono::seconds(1);  // sent and not counted: caches and pools fill
  Duration length = std::chrono::seconds(10);  // that counts
  Duration window = std::chrono::hours(1);     // of it that has figures of its own
  std::uint64_t seed = 1;
};

}  // namespace millrace::load
