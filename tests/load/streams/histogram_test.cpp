// SPDX-License-Identifier: Apache-2.0
#include "load/streams/histogram.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace millrace;
using namespace std::chrono_literals;
using load::Histogram;

namespace {

bool is_near(Duration measured, Duration wanted) {
  return measured >= wanted - wanted / 64 && measured <= wanted + wanted / 64;
}

}  // namespace

TEST_CASE("an empty histogram has zeros for quantiles") {
  CHECK(Histogram().quantile(0.99) == 0ns);
  CHECK(Histogram().greatest() == 0ns);
}

TEST_CASE("a time is kept with a resolution of 1/64, from nanoseconds to hours") {
  for (Duration time : {1ns, 63ns, 64ns, 127ns, 128ns, 1000ns, 123'456'789ns}) {
    Histogram histogram;
    histogram.add(time);
    CHECK(is_near(histogram.quantile(0.5), time));
    CHECK(histogram.greatest() == time);
  }
  Histogram histogram;
  histogram.add(1h);
  CHECK(is_near(histogram.quantile(0.5), 1h));
}

TEST_CASE("quantiles of evenly spread times are exact within the resolution") {
  Histogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(i * 1us);
  CHECK(is_near(histogram.quantile(0.5), 501us));
  CHECK(is_near(histogram.quantile(0.9), 901us));
  CHECK(is_near(histogram.quantile(0.99), 991us));
  CHECK(is_near(histogram.quantile(0.999), 1000us));
  CHECK(histogram.count() == 1000);
}

TEST_CASE("times beyond the scale count as its end, negative times as 0") {
  Histogram histogram;
  histogram.add(1000h);
  histogram.add(-5us);
  CHECK(histogram.quantile(0) == 0ns);
  CHECK(histogram.quantile(0.9) > 1h);
  CHECK(histogram.greatest() == 1000h);
}

TEST_CASE("a sum of histograms is the histogram of all") {
  Histogram one, other, both;
  for (int i = 1; i <= 500; ++i) {
    one.add(i * 1us);
    other.add(i * 1ms);
    both.add(i * 1us);
    both.add(i * 1ms);
  }
  one.add(other);
  for (double part : {0.1, 0.5, 0.9, 0.999}) CHECK(one.quantile(part) == both.quantile(part));
  CHECK(one.greatest() == 500ms);
}
