// SPDX-License-Identifier: Apache-2.0
#include "workers/library/copy_polling.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace std::chrono_literals;

namespace {

constexpr Time begun{1h};

// True if a check at this time, after many others, is followed by the next one at once.
bool checks_at_once(std::size_t bytes, Duration after) {
  CopyPolling polling(bytes, begun);
  for (unsigned i = 0; i < CopyPolling::least_at_once; ++i) CHECK(polling.next(begun) == begun);
  const Time now = begun + after;
  const Time next = polling.next(now);
  CHECK((next == now || next == now + 50us));
  return next == now;
}

}  // namespace

TEST_CASE("the end of a copy is checked at once for as long as the copy should take") {
  CHECK(checks_at_once(1'000'000, 49us));
  CHECK_FALSE(checks_at_once(1'000'000, 50us));
}

TEST_CASE(
    "the end of a large copy is checked at once for 200 us, that of a small one a few times") {
  CHECK(checks_at_once(1'000'000'000, 199us));
  CHECK_FALSE(checks_at_once(1'000'000'000, 200us));
  CHECK_FALSE(checks_at_once(0, 0us));
}
