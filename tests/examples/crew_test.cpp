// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/crew.h"

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <vector>

using millrace::pocketsphinx::Crew;

TEST_CASE("each job of a round is done once before the round returns") {
  for (std::size_t size : {1, 2, 5}) {
    Crew crew(size);
    for (std::size_t jobs : {0, 1, 3, 64}) {
      std::vector<std::atomic<int>> done(jobs);
      crew.run(jobs, [&](std::size_t i) { ++done[i]; });
      for (const auto& times : done) CHECK(times == 1);
    }
  }
}

TEST_CASE("jobs run at the same time on as many threads as the crew has") {
  Crew crew(3);
  std::barrier together(3);  // hangs, until the test's time limit, unless three threads arrive
  std::atomic<int> passed = 0;
  crew.run(3, [&](std::size_t) {
    together.arrive_and_wait();
    ++passed;
  });
  CHECK(passed == 3);
}

TEST_CASE("a crew of one works on the calling thread, in order") {
  Crew crew(1);
  std::vector<std::size_t> order;
  crew.run(3, [&](std::size_t i) { order.push_back(i); });
  CHECK(order == std::vector<std::size_t>{0, 1, 2});
}
