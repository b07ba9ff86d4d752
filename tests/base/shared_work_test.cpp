// SPDX-License-Identifier: Apache-2.0
#include "base/shared_work.h"

#include <catch2/catch.hpp>
#include <stdexcept>

using namespace millrace;

namespace {

const auto no_progress = [](std::uint64_t) {};

}  // namespace

TEST_CASE("each item is worked on once, and without items nothing is called") {
  std::vector<std::atomic<int>> calls(1000);
  for (const std::uint64_t others : {0, 3}) {
    share_work(
        calls.size(), others, "work", [&](std::uint64_t, std::uint64_t i) { ++calls[i]; },
        no_progress);
    share_work(
        0, others, "work", [&](std::uint64_t, std::uint64_t) { ++calls[0]; }, no_progress);
  }
  for (const std::atomic<int>& count : calls) CHECK(count == 2);
}

TEST_CASE("what one thread throws stops all, and is thrown again") {
  for (const bool first : {true, false}) {
    std::atomic<bool> thrown = false;
    const auto work = [&](std::uint64_t thread, std::uint64_t) {
      // The other threads go on until this one has thrown.
      if ((thread == 0) != first || thrown.exchange(true)) return;
      throw std::runtime_error("full");
    };
    CHECK_THROWS_WITH(share_work(std::uint64_t{1} << 62, 3, "work", work, no_progress), "full");
  }
}
