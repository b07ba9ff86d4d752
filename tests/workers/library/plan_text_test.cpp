// SPDX-License-Identifier: Apache-2.0
#include "workers/plan/plan_text.h"

#include <catch2/catch.hpp>
#include <string>

using namespace millrace;

namespace {

const PlanText plan{
    .origin = R"({"digest":"7f","streams":9,"seed":1.0})",
    .epoch = 2,
    .steps = 120,
    .epochs = 10,
    .slots = 4,
    .companions = {{.name = "vad", .element = CompanionElement::u8, .frames_per_entry = 160},
                   {.name = "clean", .element = CompanionElement::f32, .values = 2}}};

// The plan with one part of its text replaced.
std::optional<PlanText> changed(const std::string& part, const std::string& by) {
  std::string text = to_json(plan);
  const auto at = text.find(part);
  REQUIRE(at != text.npos);
  return read_plan(text.replace(at, part.size(), by));
}

}  // namespace

TEST_CASE("a plan is unchanged when it is written and read, its origin to the letter") {
  CHECK(read_plan(to_json(plan)) == plan);
  PlanText endless = plan;
  endless.epochs = std::nullopt;
  endless.companions.clear();
  endless.shares_slots = false;
  CHECK(read_plan(to_json(endless)) == endless);
}

TEST_CASE("a plan with missing or wrong members is refused") {
  CHECK_FALSE(read_plan("{}"));
  CHECK_FALSE(read_plan("[]"));
  CHECK_FALSE(read_plan("{"));
  CHECK(changed("120", "121"));
  CHECK(changed(R"(,"shares_slots":true)", "") == plan);
  CHECK_FALSE(changed(R"("shares_slots":true)", R"("shares_slots":1)"));
  CHECK_FALSE(changed("120", "-1"));
  CHECK_FALSE(changed("120", "1.5"));
  CHECK_FALSE(changed("120", "18446744073709551615"));
  CHECK_FALSE(changed(R"("epochs":10)", R"("epochs":"10")"));
  CHECK_FALSE(changed(R"("origin":{)", R"("other":{)"));
  CHECK_FALSE(changed(R"("streams":9)", R"("other":9)"));
  CHECK_FALSE(changed(R"("streams":9)", R"("streams":"9")"));
  CHECK_FALSE(changed(R"("streams":9)", R"("streams":-9)"));
}

TEST_CASE("a companion with impossible values is refused") {
  CHECK_FALSE(changed(R"("u8")", R"("u9")"));
  CHECK_FALSE(changed(R"("frames_per_entry":160)", R"("frames_per_entry":0)"));
  CHECK_FALSE(changed(R"("values":2)", R"("values":0)"));
  CHECK_FALSE(changed(R"("values":2)", R"("values":1048576)"));
  CHECK_FALSE(changed(R"("entries_per_frame":1)", R"("entries_per_frame":2)"));  // and 160
  CHECK_FALSE(changed(R"("name":"vad")", R"("name":"a\nb")"));
}
