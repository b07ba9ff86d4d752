// SPDX-License-Identifier: Apache-2.0
#include "service/watch/overload.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace millrace;

namespace {

// The actions while these numbers of 100 bytes are used, one after the other.
std::vector<std::string_view> actions(std::vector<std::uint64_t> used) {
  MemoryPressure pressure;
  std::vector<std::string_view> names;
  for (const std::uint64_t bytes : used) names.push_back(name_of(pressure.update(bytes, 100)));
  return names;
}
using Names = std::vector<std::string_view>;

}  // namespace

TEST_CASE("the more memory is used, the stronger is the action") {
  CHECK(actions({0, 79, 80, 89, 90, 90, 94, 95, 100}) ==
        Names{"none", "none", "reject_streams", "reject_streams", "shed_recording", "close_idle",
              "close_idle", "reset_largest", "reset_largest"});
}

TEST_CASE("an action ends when memory use is well below its threshold") {
  CHECK(actions({95, 95, 91, 90, 89, 86, 85, 84, 80, 75, 74}) ==
        Names{"shed_recording", "reset_largest", "reset_largest", "reset_largest", "close_idle",
              "close_idle", "close_idle", "reject_streams", "reject_streams", "reject_streams",
              "none"});
}

TEST_CASE("actions begin at the second check and end at once if memory use jumps") {
  CHECK(actions({10, 99, 99, 10, 92, 92, 10}) == Names{"none", "shed_recording", "reset_largest",
                                                       "none", "shed_recording", "close_idle",
                                                       "none"});
}

TEST_CASE("recording is shed first, and clients are affected only if that does not suffice") {
  CHECK(actions({99, 89, 84, 90, 86, 90}) == Names{"shed_recording", "shed_recording",
                                                   "reject_streams", "shed_recording",
                                                   "shed_recording", "close_idle"});
}

TEST_CASE("spare memory is limited by the threshold of the first action") {
  CHECK(MemoryPressure::spare(1'000, 10'000) == 7'000);
  CHECK(MemoryPressure::spare(9'000, 10'000) == 0);
  CHECK(MemoryPressure::spare(0, 0) == 0);
}

TEST_CASE("spare memory is divided among new streams, open streams and frames") {
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

TEST_CASE("without any memory the strongest action applies") {
  for (const std::uint64_t limit : {0, 100}) {
    MemoryPressure pressure;
    (void)pressure.update(200, limit);
    CHECK(pressure.update(200, limit) == Overload::reset_largest);
  }
}

TEST_CASE("an operation with a cooldown of four ticks starts at most once in four") {
  Cooldown trim(4);
  std::vector<int> started;
  for (int tick = 0; tick < 10; ++tick) {
    trim.tick();
    const bool wanted = tick != 0;  // memory becomes short at the second check
    if (wanted && trim.try_start()) started.push_back(tick);
  }
  CHECK(started == std::vector{1, 5, 9});
}
