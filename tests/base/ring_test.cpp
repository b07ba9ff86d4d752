// SPDX-License-Identifier: Apache-2.0
#include "base/ring.h"

#include <catch2/catch.hpp>
#include <deque>
#include <random>
#include <utility>

using namespace millrace;

TEST_CASE("values can be removed from both ends of a ring") {
  Ring<int> ring;
  for (int i = 0; i < 6; ++i) ring.push_back(i);
  CHECK(ring.pop_front() == 0);
  CHECK(ring.pop_back() == 5);
  CHECK(ring.front() == 1);
  CHECK(ring.back() == 4);
  CHECK(ring.size() == 4);
  ring.clear();
  CHECK(ring.empty());
}

TEST_CASE("a ring keeps the order when it wraps and grows") {
  std::mt19937 random(3);
  Ring<int> ring;
  std::deque<int> model;
  for (int i = 0; i < 5000; ++i) {
    if (random() % 5 < 3) {
      ring.push_back(i);
      model.push_back(i);
    } else if (!model.empty()) {
      CHECK(ring.pop_front() == model.front());
      model.pop_front();
    }
    if (i % 1000 == 0) {
      ring.clear();
      model.clear();
    }
    CHECK(ring.size() == model.size());
    if (!model.empty()) CHECK(ring[model.size() / 2] == model[model.size() / 2]);
  }
}

TEST_CASE("a ring whose values were moved to another is empty, without memory and of use") {
  Ring<int> ring;
  for (int i = 0; i < 3; ++i) ring.push_back(i);
  Ring<int> other(std::move(ring));
  CHECK(other.size() == 3);
  CHECK(ring.empty());
  CHECK(ring.capacity() == 0);
  ring.push_back(7);
  other = std::move(ring);
  CHECK(other.size() == 1);
  CHECK(other.front() == 7);
  CHECK(ring.empty());
}
