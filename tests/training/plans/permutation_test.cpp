// SPDX-License-Identifier: Apache-2.0
#include "training/plans/order/permutation.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "training/plans/order/windowed_permutation.h"

namespace millrace::training {
namespace {

TEST_CASE("a permutation has each value once") {
  for (std::uint64_t size = 1; size <= 300; ++size) {
    const Permutation permutation(size, size * 7);
    std::vector<bool> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      REQUIRE(permutation[i] < size);
      REQUIRE_FALSE(seen[permutation[i]]);
      seen[permutation[i]] = true;
    }
  }
}

// Pearson's statistic of counts that should be equal.
double chi_square(const std::vector<std::uint64_t>& counts) {
  double all = 0, sum = 0;
  for (const std::uint64_t count : counts) all += static_cast<double>(count);
  const double expected = all / static_cast<double>(counts.size());
  for (const std::uint64_t count : counts)
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) /
           expected;
  return sum;
}

// Six standard deviations above the mean of the statistic.
double limit(std::size_t cells) {
  const double freedom = static_cast<double>(cells) - 1;
  return freedom + 6 * std::sqrt(2 * freedom);
}

TEST_CASE("each value is equally frequent at each place over the keys") {
  for (const std::uint64_t size : {2u, 3u, 5u, 17u, 64u, 100u}) {
    std::vector<std::vector<std::uint64_t>> counts(size, std::vector<std::uint64_t>(size));
    for (std::uint64_t key = 0; key < 400 * size; ++key) {
      const Permutation permutation(size, draw_key(5, Purpose::streams, key));
      for (std::uint64_t i = 0; i < size; ++i) ++counts[i][permutation[i]];
    }
    for (std::uint64_t i = 0; i < size; ++i) {
      INFO(size << " at " << i);
      CHECK(chi_square(counts[i]) < limit(size));
    }
  }
}

TEST_CASE("all orders of four values are equally frequent") {
  std::map<std::vector<std::uint64_t>, std::uint64_t> orders;
  for (std::uint64_t key = 0; key < 24'000; ++key) {
    const Permutation permutation(4, draw_key(1, Purpose::rows, key));
    ++orders[{permutation[0], permutation[1], permutation[2], permutation[3]}];
  }
  REQUIRE(orders.size() == 24);
  std::vector<std::uint64_t> counts;
  for (const auto& [order, count] : orders) counts.push_back(count);
  CHECK(chi_square(counts) < limit(24));
}

TEST_CASE("neighbours of a large permutation are unrelated") {
  const std::uint64_t size = 1'000'000, cells = 50;
  const Permutation permutation(size, 11);
  std::vector<std::uint64_t> counts(cells * cells);
  for (std::uint64_t i = 0; i + 1 < size; ++i)
    ++counts[permutation[i] * cells / size * cells + permutation[i + 1] * cells / size];
  CHECK(chi_square(counts) < limit(counts.size()));
}

TEST_CASE("the inverse of a permutation gives the place of each value") {
  for (const std::uint64_t size : {1u, 2u, 63u, 64u, 65u, 1000u}) {
    const Permutation permutation(size, size);
    for (std::uint64_t i = 0; i < size; ++i) REQUIRE(permutation.place_of(permutation[i]) == i);
  }
}

TEST_CASE("a windowed permutation gives one window after the other") {
  for (const std::uint64_t window : {1u, 2u, 7u, 50u, 99u, 100u, 1000u}) {
    for (std::uint64_t key = 0; key < 20; ++key) {
      WindowedPermutation order({.on = true, .window = window}, 100, key);
      std::vector<bool> seen(100);
      std::vector<std::uint64_t> windows;
      for (std::uint64_t i = 0; i < 100; ++i) {
        REQUIRE_FALSE(seen[order[i]]);
        seen[order[i]] = true;
        if (windows.empty() || windows.back() != order[i] / window)
          windows.push_back(order[i] / window);
        CHECK(order.place_of(order[i]) == i);
      }
      CHECK(windows.size() == (100 + window - 1) / window);
    }
  }
}

TEST_CASE("each window of a permutation is equally often at each place, also a shorter one") {
  std::vector<std::vector<std::uint64_t>> counts(5, std::vector<std::uint64_t>(5));
  for (std::uint64_t key = 0; key < 4000; ++key) {
    const WindowOrder order(43, 10, draw_key(3, Purpose::rows, key));
    for (std::uint64_t i = 0; i < 5; ++i) ++counts[i][order[i].number];
  }
  for (const auto& at_place : counts) CHECK(chi_square(at_place) < limit(5));
}

TEST_CASE("without shuffling the order stays as it is") {
  WindowedPermutation order({.on = false, .window = 7}, 100, 5);
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(order[i] == i);
}

}  // namespace
}  // namespace millrace::training
