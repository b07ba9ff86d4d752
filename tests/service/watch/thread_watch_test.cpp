// SPDX-License-Identifier: Apache-2.0
#include "service/watch/thread_watch.h"

#include <array>
#include <catch2/catch.hpp>

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE("threads that tick are not silent") {
  ThreadWatch watch;
  CHECK(watch.silence() == 0s);
  for (std::uint64_t i = 1; i < 10; ++i) {
    watch.update(std::array{i, 2 * i}, 1s);
    CHECK(watch.silence() == 0s);
  }
}

TEST_CASE("a thread that does not tick is detected, until it ticks again") {
  ThreadWatch watch;
  for (std::uint64_t i = 1; i <= 4; ++i) watch.update(std::array<std::uint64_t, 2>{i, 7}, 500ms);
  CHECK(watch.silence() == 1500ms);
  watch.update(std::array<std::uint64_t, 2>{5, 8}, 500ms);
  CHECK(watch.silence() == 0s);
}

TEST_CASE("a late check adds only one interval to the silence") {
  ThreadWatch watch;
  watch.update(std::array<std::uint64_t, 1>{1}, 1s);
  watch.update(std::array<std::uint64_t, 1>{1}, 1s);  // an hour later: the process was stopped
  CHECK(watch.silence() == 1s);
}
