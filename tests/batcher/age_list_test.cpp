// SPDX-License-Identifier: Apache-2.0
#include "batcher/age_list.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <random>

using namespace millrace;

namespace {

Time at(int nanoseconds) { return Time(Duration(nanoseconds)); }

std::vector<std::uint32_t> all_of(AgeList& list) {
  std::vector<std::uint32_t> slots;
  while (list.size() > 0) slots.push_back(list.pop());
  return slots;
}

}  // namespace

TEST_CASE("slots are removed by age, and those of equal age in insertion order") {
  AgeList list(6);
  list.insert(0, at(5));
  list.insert(5, at(9));
  list.insert(1, at(5));
  list.insert(4, at(7));
  list.insert(2, at(1));
  CHECK(list.oldest() == at(1));
  CHECK(all_of(list) == std::vector<std::uint32_t>{2, 0, 1, 4, 5});
}

TEST_CASE("an empty list has no oldest slot") {
  AgeList list(2);
  CHECK(list.oldest() == Time::max());
  list.insert(1, at(3));
  CHECK(list.pop() == 1);
  CHECK(list.oldest() == Time::max());
  CHECK(list.size() == 0);
}

TEST_CASE("slots can be erased anywhere and inserted again") {
  AgeList list(4);
  for (std::uint32_t slot : {0, 1, 2, 3}) list.insert(slot, at(static_cast<int>(slot)));
  list.erase(0);
  list.erase(2);
  list.erase(3);
  list.insert(2, at(0));
  CHECK(list.size() == 2);
  CHECK(all_of(list) == std::vector<std::uint32_t>{2, 1});
}

TEST_CASE(
    "slots inserted and erased at random are removed by age, and equal ages in insertion order") {
  std::mt19937 random(1);
  AgeList list(64);
  std::vector<std::pair<int, std::uint32_t>> expected;  // by age
  std::vector<bool> in(64);
  for (int step = 0; step < 20000; ++step) {
    const auto slot = static_cast<std::uint32_t>(random() % 64);
    if (in[slot]) {
      list.erase(slot);
      std::erase_if(expected, [&](const auto& entry) { return entry.second == slot; });
    } else {
      const int age = static_cast<int>(random() % 40);
      list.insert(slot, at(age));
      expected.insert(
          std::ranges::upper_bound(expected, age, {}, &std::pair<int, std::uint32_t>::first),
          {age, slot});
    }
    in[slot] = !in[slot];
    REQUIRE(list.size() == expected.size());
    REQUIRE(list.oldest() == (expected.empty() ? Time::max() : at(expected.front().first)));
  }
  for (const auto& [age, slot] : expected) REQUIRE(list.pop() == slot);
}

TEST_CASE("inserting a slot that is older than thousands of others needs no search") {
  constexpr std::uint32_t half = 1 << 15;
  AgeList list(2 * half);
  const std::clock_t begin = std::clock();  // CPU time, not wall time
  for (std::uint32_t i = 0; i < half; ++i) list.insert(i, at(static_cast<int>(half + i)));
  const std::clock_t middle = std::clock();
  for (std::uint32_t i = 0; i < half; ++i) list.insert(half + i, at(static_cast<int>(i)));
  CHECK(std::clock() - middle < 3 * (middle - begin) + CLOCKS_PER_SEC / 50);
  CHECK(list.pop() == half);
}
