// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/thread_team.h"

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <vector>

using millrace::pocketsphinx::ThreadTeam;

TEST_CASE("each job of a round is done once before the round returns") {
  for (std::size_t size : {1, 2, 5}) {
    ThreadTeam team(size);
    for (std::size_t jobs : {0, 1, 3, 64}) {
      std::vector<std::atomic<int>> done(jobs);
      team.run(jobs, [&](std::size_t i) { ++done[i]; });
      for (const auto& times : done) CHECK(times == 1);
    }
  }
}

TEST_CASE("jobs run at the same time on as many threads as the team has") {
  ThreadTeam team(3);
  std::barrier together(3);  // hangs, until the test's time limit, unless three threads arrive
  std::atomic<int> passed = 0;
  team.run(3, [&](std::size_t) {
    together.arrive_and_wait();
    ++passed;
  });
  CHECK(passed == 3);
}

TEST_CASE("a team of one thread runs its jobs on the calling thread, in order") {
  ThreadTeam team(1);
  std::vector<std::size_t> order;
  team.run(3, [&](std::size_t i) { order.push_back(i); });
  CHECK(order == std::vector<std::size_t>{0, 1, 2});
}
