// SPDX-License-Identifier: Apache-2.0
// The rate of signal that all streams of a tenant share.
#include <catch2/catch.hpp>

#include "streams/input_pace.h"
#include "streams/stream_settings.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

const Time start{100s};

}  // namespace

TEST_CASE("streams of a tenant are not read while they have sent more than its burst") {
  SharedRate tenant;
  tenant.set_rule(RateRule(2, 10));
  InputPace first(no_pace, &tenant), second(no_pace, &tenant);
  first.add(6s, start);
  second.add(4s, start);
  CHECK_FALSE(second.exceeded());
  second.add(1s, start);
  CHECK(second.exceeded());
  first.pass(start);
  CHECK(first.exceeded());
  first.pass(start + 500ms - 1us);
  CHECK(first.exceeded());
  first.pass(start + 500ms + 1us);
  CHECK_FALSE(first.exceeded());
  CHECK_FALSE(first.limits());
}

TEST_CASE("a tenant without a rate limits nothing, and a reload may give it one") {
  SharedRate tenant;
  InputPace pace(no_pace, &tenant);
  CHECK_FALSE(pace.counts());
  pace.add(1000s, start);
  CHECK_FALSE(pace.exceeded());
  tenant.set_rule(RateRule(1, 10));
  CHECK(pace.counts());
  pace.add(11s, start);
  CHECK(pace.exceeded());
  tenant.set_rule({});
  pace.pass(start);
  CHECK_FALSE(pace.exceeded());
}
