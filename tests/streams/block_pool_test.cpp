// SPDX-License-Identifier: Apache-2.0
#include "streams/frames/block_pool.h"

#include <catch2/catch.hpp>
#include <utility>

using namespace millrace;

TEST_CASE("the block given back last is allocated first") {
  Gauge in_use;
  BlockPool pool(64, 8, in_use);
  auto first = pool.allocate();
  auto second = pool.allocate();
  const std::byte* const memory = second.get();
  pool.give_back(std::move(first));
  pool.give_back(std::move(second));
  CHECK(pool.allocate().get() == memory);
}

TEST_CASE("a pool keeps a bounded number of blocks") {
  Gauge in_use;
  BlockPool pool(64, 1, in_use);
  auto first = pool.allocate();
  auto second = pool.allocate();
  CHECK(in_use.value() == 128);
  pool.give_back(std::move(first));
  pool.give_back(std::move(second));
  CHECK(in_use.value() == 0);
  CHECK(pool.spare() == 1);
}

TEST_CASE("above the soft limit allocate() still succeeds, but blocks are scarce") {
  Gauge in_use;
  BlockPool pool(64, 8, in_use);
  auto first = pool.allocate();
  CHECK_FALSE(pool.scarce());
  pool.allow(64);
  auto second = pool.allocate();
  CHECK_FALSE(pool.scarce());
  auto third = pool.allocate();
  CHECK(third);
  CHECK(pool.scarce());
  pool.give_back(std::move(third));
  CHECK_FALSE(pool.scarce());
  pool.give_back(std::move(second));
  pool.give_back(std::move(first));
  CHECK_FALSE(pool.scarce());
  pool.allow(std::numeric_limits<std::uint64_t>::max());
  first = pool.allocate();
  CHECK_FALSE(pool.scarce());
}

TEST_CASE("if no more memory is allowed, blocks stay scarce until none is in use") {
  Gauge in_use;
  BlockPool pool(64, 8, in_use);
  pool.allow(0);
  CHECK_FALSE(pool.scarce());
  auto block = pool.allocate();
  pool.allow(0);
  CHECK(pool.scarce());
  pool.give_back(std::move(block));
  CHECK_FALSE(pool.scarce());
}
