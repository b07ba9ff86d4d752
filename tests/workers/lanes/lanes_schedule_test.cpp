// SPDX-License-Identifier: Apache-2.0
//
// Thousands of schedules of streams and workers. Tested elsewhere: which waiting stream gets which
// slot (lanes_test, lanes_room_test), when a batch closes (the batcher's tests), and the service
// with real connections.
#include <catch2/catch.hpp>

#include "tests/support/sampled.h"
#include "tests/workers/lanes/lane_schedule.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("rows are handed over at least once, done once and in order, whatever the workers do") {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= test::sampled(2000u); ++seed) {
    INFO("seed " << seed);
    LaneSchedule(seed, tally).run();
  }
  for (const char* what :
       {"lost", "overdue", "left", "moved", "given up", "poisoned", "worker failed", "no worker",
        "died early", "repeated", "late", "lied", "cut", "message", "message late", "no room"}) {
    INFO(what);
    CHECK(tally[what] > test::sampled(300));
  }
}
