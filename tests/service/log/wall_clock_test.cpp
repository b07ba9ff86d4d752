// SPDX-License-Identifier: Apache-2.0
#include "service/log/wall_clock.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE("a jump of the wall clock is reported once, with its direction") {
  WallClockJumps jumps;
  CHECK(!jumps.sample(1h, Time(5s)));
  CHECK(jumps.sample(2h + 1s, Time(6s)) == ClockJump::forward);
  CHECK(!jumps.sample(2h + 2s, Time(7s)));
  CHECK(jumps.sample(1h, Time(8s)) == ClockJump::backward);
  CHECK(!jumps.sample(1h + 1s, Time(9s)));
}

TEST_CASE("slewing the wall clock is not a jump") {
  WallClockJumps jumps;
  for (int second = 0; second < 1000; ++second)
    CHECK(!jumps.sample(second * 1001ms, Time(second * 1s)));
}
