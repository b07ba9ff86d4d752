// SPDX-License-Identifier: Apache-2.0
#include "bench/schedule.h"

#include <random>

namespace millrace::bench {

namespace {

using namespace std::chrono_literals;

constexpr Duration period = 100ms;
constexpr Duration warm_up = 1s;

}  // namespace

Schedule::Schedule(std::uint32_t streams, Duration length) : length_(length) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<Duration::rep> phase(0, period.count() - 1);
  std::uniform_int_distribution<Duration::rep> off(-period.count() / 200, period.count() / 200);
  for (std::uint32_t i = 0; i < streams; ++i)
    clocks_.push_back({Duration(phase(random)), period + Duration(off(random))});
}

Time Schedule::due(std::uint32_t stream, std::uint32_t number) const {
  const StreamClock& clock = clocks_[stream];
  return start_ + clock.phase + number * clock.period;
}

Time Schedule::counted_from() const { return start_ + warm_up; }

}  // namespace millrace::bench
