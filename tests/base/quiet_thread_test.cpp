// SPDX-License-Identifier: Apache-2.0
#include "base/quiet_thread.h"

#include <catch2/catch.hpp>

using namespace millrace;

TEST_CASE("the timers of a thread are precise as long as requested, and then as before") {
  ::prctl(PR_SET_TIMERSLACK, 12345UL);
  {
    const PreciseTimers precise;
    CHECK(::prctl(PR_GET_TIMERSLACK) == 1);
  }
  CHECK(::prctl(PR_GET_TIMERSLACK) == 12345);
}
