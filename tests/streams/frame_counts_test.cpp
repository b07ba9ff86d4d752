// SPDX-License-Identifier: Apache-2.0
#include "streams/frames/frame_counts.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>

using namespace millrace;

TEST_CASE("positions are rounded down over the whole stream") {
  const FrameCounts counts(44'100, 16'000);
  CHECK(counts.position(0) == 0);
  CHECK(counts.position(2) == 0);
  CHECK(counts.position(3) == 1);
  CHECK(counts.position(441) == 160);
  CHECK(counts.position(440) == 159);
  CHECK(FrameCounts(8000, 16'000).position(3) == 6);
}

TEST_CASE("the input frames of a position are the most that give at most that position") {
  for (const auto& [from, to] :
       {std::pair{44'100, 16'000}, {8000, 16'000}, {48'000, 16'000}, {8001, 192'000}, {7, 5}}) {
    const FrameCounts counts(from, to);
    for (std::uint64_t position = 0; position < 2000; ++position) {
      const std::uint64_t frames = counts.input_frames(position);
      INFO(from << " to " << to << ", position " << position);
      REQUIRE(counts.position(frames) <= position);
      REQUIRE(counts.position(frames + 1) > position);
    }
  }
}

TEST_CASE("counts of equal rates are equal, also if the rate is fractional") {
  const FrameCounts counts(12.5, 12.5);
  CHECK(counts.position(7) == 7);
  CHECK(counts.input_frames(7) == 7);
}

TEST_CASE("counts are exact up to 2^53, and saturate beyond 64 bits") {
  const std::uint64_t last = std::uint64_t{1} << 53;
  const FrameCounts up(8000, 192'000), down(191'999, 8000);
  CHECK(up.position(last) == last * 24);
  CHECK(up.input_frames(last * 24 + 23) == last);
  CHECK(down.position(last) == 375'301'923'645'060);  // by arbitrary-precision arithmetic
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  CHECK(up.position(most) == most);
  CHECK(down.input_frames(most) == most);
}
