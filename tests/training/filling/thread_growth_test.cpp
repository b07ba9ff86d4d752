// SPDX-License-Identifier: Apache-2.0
#include "training/filling/thread_growth.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace millrace;
using namespace std::chrono_literals;
using training::ThreadGrowth;

namespace {

// The threads after each period of a second with these waits.
std::vector<std::uint32_t> threads_after(const std::vector<Duration>& waits,
                                         std::uint32_t most = 8) {
  ThreadGrowth growth(1, most);
  Time now{};
  Duration waited{};
  CHECK(growth.threads(now, waited) == 1);
  std::vector<std::uint32_t> threads;
  for (const Duration wait : waits) threads.push_back(growth.threads(now += 1s, waited += wait));
  return threads;
}

using Threads = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("threads are doubled while the consumer waits, after a period that does not count") {
  CHECK(threads_after({900ms, 800ms, 800ms, 400ms, 400ms, 200ms, 200ms, 10ms, 10ms}) ==
        Threads{1, 2, 2, 4, 4, 8, 8, 8, 8});
}

TEST_CASE("a consumer that does not wait gets no thread") {
  CHECK(threads_after({900ms, 50ms, 50ms, 0ms, 50ms}) == Threads{1, 1, 1, 1, 1});
}

TEST_CASE("threads that do not shorten the waits are the last ones") {
  CHECK(threads_after({800ms, 800ms, 800ms, 790ms, 900ms, 900ms}) == Threads{1, 2, 2, 2, 2, 2});
}

TEST_CASE("there are never more threads than the limit") {
  CHECK(threads_after({800ms, 800ms, 500ms, 500ms, 300ms, 300ms}, 3) == Threads{1, 2, 2, 3, 3, 3});
}

TEST_CASE("the waits within a period are added up") {
  ThreadGrowth growth(1, 4);
  (void)growth.threads(Time{}, {});
  for (int i = 1; i < 20; ++i) CHECK(growth.threads(Time{} + i * 100ms, i * 10ms) == 1);
  CHECK(growth.threads(Time{} + 2s, 200ms) == 2);
}
