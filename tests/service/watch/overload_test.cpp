// SPDX-License-Identifier: Apache-2.0
#include "service/watch/overload.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace millrace;

namespace {

// What is done as these parts of 100 bytes are used, one after the other.
std::vector<std::string_view> measures(std::vector<std::uint64_t> used) {
  MemoryPressure pressure;
  std::vector<std::string_view> names;
  for (const std::uint64_t bytes : used) names.push_back(name_of(pressure.look(bytes, 100)));
  return names;
}
using Names = std::vector<std::string_view>;

}  // namespace

TEST_CASE("the more memory is used, the more is done") {
  CHECK(measures({0, 79, 80, 89, 90, 94, 95, 100}) ==
        Names{"none", "none", "reject_streams", "reject_streams", "close_idle", "close_idle",
              "reset_largest", "reset_largest"});
}

TEST_CASE("a measure ends when memory is well below where it begins") {
  CHECK(measures({95, 91, 90, 89, 86, 85, 84, 80, 75, 74}) ==
        Names{"reset_largest", "reset_largest", "reset_largest", "close_idle", "close_idle",
              "close_idle", "reject_streams", "reject_streams", "reject_streams", "none"});
}

TEST_CASE("measures are taken and ended at once where memory leaps") {
  CHECK(measures({10, 99, 10, 92, 10}) ==
        Names{"none", "reset_largest", "none", "close_idle", "none"});
}

TEST_CASE("what may be taken ends where something would have to be done") {
  CHECK(MemoryPressure::spare(1'000, 10'000) == 7'000);
  CHECK(MemoryPressure::spare(9'000, 10'000) == 0);
  CHECK(MemoryPressure::spare(0, 0) == 0);
}

TEST_CASE("what may be taken is dealt out to new streams, to those that are open, and to frames") {
  const Allowance first = allowance(80'000, 0, 40, 60);
  CHECK(first.streams == 200);
  CHECK(first.bytes == 60'000);
  const Allowance later = allowance(80'000, 400, 40, 60);
  CHECK(later.streams == 500);
  CHECK(later.bytes == 54'000);
  const Allowance enough = allowance(80'000, 800, 40, 60);
  CHECK(enough.streams == 800);
  CHECK(enough.bytes == 48'000);
  const Allowance none = allowance(0, 200, 40, 60);
  CHECK(none.streams == 200);
  CHECK(none.bytes == 0);
}

TEST_CASE("where there is no memory at all everything is done") {
  CHECK(MemoryPressure().look(0, 0) == Overload::reset_largest);
  CHECK(MemoryPressure().look(200, 100) == Overload::reset_largest);
}

TEST_CASE("what takes the locks of the allocator is done in one of four looks at most") {
  Turn trim(4);
  std::vector<int> looks;
  for (int look = 0; look < 10; ++look) {
    trim.look();
    const bool wanted = look != 0;  // memory becomes short at the second look
    if (wanted && trim.take()) looks.push_back(look);
  }
  CHECK(looks == std::vector{1, 5, 9});
}
