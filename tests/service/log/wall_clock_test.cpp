// SPDX-License-Identifier: Apache-2.0
#include "service/log/wall_clock.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE("a step of the wall clock is noticed once, and which way it went") {
  WallClockSteps steps;
  CHECK(!steps.look(1h, Time(5s)));
  CHECK(steps.look(2h + 1s, Time(6s)) == ClockJump::forward);
  CHECK(!steps.look(2h + 2s, Time(7s)));
  CHECK(steps.look(1h, Time(8s)) == ClockJump::backward);
  CHECK(!steps.look(1h + 1s, Time(9s)));
}

TEST_CASE("a wall clock that is slewed has not stepped") {
  WallClockSteps steps;
  for (int second = 0; second < 1000; ++second)
    CHECK(!steps.look(second * 1001ms, Time(second * 1s)));
}
