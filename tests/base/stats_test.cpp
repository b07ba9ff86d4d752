// SPDX-License-Identifier: Apache-2.0
#include "base/stats.h"

#include <catch2/catch.hpp>

using namespace millrace;

TEST_CASE("a value on a bound belongs to the bucket below it") {
  Histogram histogram(buckets::batch);
  for (std::int64_t value : {1, 2, 3, 512, 513}) histogram.observe(value);
  CHECK(histogram.count(0) == 1);
  CHECK(histogram.count(1) == 1);
  CHECK(histogram.count(2) == 1);
  CHECK(histogram.count(11) == 1);
  CHECK(histogram.count(12) == 1);
  CHECK(histogram.sum() == 1031);
}

TEST_CASE("time is counted in nanoseconds") {
  Counter paused;
  paused.add(std::chrono::milliseconds(2));
  paused.add(std::chrono::nanoseconds(1));
  CHECK(paused.value() == 2'000'001);
}
