// SPDX-License-Identifier: Apache-2.0
#include "batcher/age_list.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

Time at(int nanoseconds) { return Time(Duration(nanoseconds)); }

std::vector<std::uint32_t> all_of(AgeList& list) {
  std::vector<std::uint32_t> slots;
  while (list.size() > 0) slots.push_back(list.pop());
  return slots;
}

}  // namespace

TEST_CASE("slots come out by age, of equal ages in the order they went in") {
  AgeList list(6);
  list.insert(0, at(5));
  list.insert(5, at(9));
  list.insert(1, at(5));
  list.insert(4, at(7));
  list.insert(2, at(1));
  CHECK(list.oldest() == at(1));
  CHECK(all_of(list) == std::vector<std::uint32_t>{2, 0, 1, 4, 5});
}

TEST_CASE("an empty list has no oldest") {
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
