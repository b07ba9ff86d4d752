// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "chunker/lengths.h"
#include "chunker/rule_json.h"
#include "chunker/sizes_text.h"
#include "chunker/spec.h"

namespace millrace {
namespace {

using Catch::Contains;
using By = SizeRule::By;

const RuleKeys four = {{"size", "320ms"}, {"sizes", "80ms+160ms+320ms+640ms"}};

RuleKeys with(RuleKeys keys, const RuleKeys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}
ChunkRule rule(const RuleKeys& keys, double rate = 16000) {
  const auto parsed = parse_rule(keys, {.rate = rate});
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed.has_value());
  return *parsed;
}
// The message, after a check that it begins with the key.
std::string refusal(const RuleKeys& keys, double rate = 16000) {
  const auto parsed = parse_rule(keys, {.rate = rate});
  REQUIRE(parsed.has_error());
  CHECK(parsed.error().message.starts_with(parsed.error().key + " = "));
  return parsed.error().message;
}

TEST_CASE("sizes are a list of lengths, and include size") {
  const ChunkRule fixed = rule(four);
  CHECK(fixed.spec == Spec{.size = 5120});
  CHECK(fixed.sizes == SizeRule{By::fixed, SizeList({1280, 2560, 5120, 10240})});
  CHECK(fixed.width() == 10240);
  CHECK(fixed.shortest_step() == 1280);
  CHECK(rule({{"size", "8"}, {"sizes", "8+16"}}).sizes.sizes == SizeList({8, 16}));
}

TEST_CASE("the rule adaptive needs sizes") {
  CHECK(rule(with(four, {{"rule", "adaptive"}})).sizes.by == By::adaptive);
  CHECK(refusal({{"size", "320ms"}, {"rule", "adaptive"}}) ==
        "rule = \"adaptive\" needs the key sizes: the sizes that the model was trained with");
}

TEST_CASE("the rule random has a seed, and draws from a list or a range") {
  CHECK(rule(with(four, {{"rule", "random"}})).sizes.seed == 0);
  const ChunkRule range = rule({{"rule", "random"},
                                {"size", "80ms"},
                                {"sizes", "40ms..1s/40ms"},
                                {"seed", "7"},
                                {"per", "stream"}});
  CHECK(range.sizes == SizeRule{By::random, SizeList(640, 16000, 640), 7, SizeRule::Per::stream});
  CHECK(range.width() == 16000);
  CHECK(range.shortest_step() == 640);
  CHECK(refusal({{"size", "4"}, {"rule", "random"}}).starts_with("rule = \"random\" needs"));
}

TEST_CASE("seed and per are for the rule random only") {
  CHECK(refusal(with(four, {{"seed", "7"}})) ==
        "seed = \"7\" cannot be set with rule = \"fixed\": only with random");
  CHECK(refusal(with(four, {{"rule", "adaptive"}, {"per", "chunk"}})) ==
        "per = \"chunk\" cannot be set with rule = \"adaptive\": only with random");
  for (const char* seed : {"", "-1", "x", "7.5", "9223372036854775808"})
    CHECK(refusal(with(four, {{"rule", "random"}, {"seed", seed}})) ==
          "seed = \"" + std::string(seed) +
              "\" must be a whole number from 0 to 9223372036854775807");
  CHECK(refusal(with(four, {{"rule", "random"}, {"per", "row"}})) ==
        "per = \"row\" must be chunk or stream");
}

TEST_CASE("sizes that descend, repeat, or are too few or too many are refused") {
  for (const char* sizes : {"", "320ms+160ms", "160ms+160ms+320ms", "320ms", "0+320ms",
                            "1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16+5120", "40ms..320ms"}) {
    CAPTURE(sizes);
    CHECK(refusal({{"size", "320ms"}, {"sizes", sizes}}) ==
          "sizes = \"" + std::string(sizes) +
              "\" must be 2 to 16 lengths of at least 1 frame in ascending order, or a range");
  }
  rule({{"size", "16"}, {"sizes", "1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16"}});
}

TEST_CASE("sizes that are not whole frames are refused") {
  CHECK(refusal({{"size", "320ms"}, {"sizes", "33ms+320ms"}}, 11025) ==
        "sizes = \"33ms+320ms\" contains \"33ms\", which must be whole frames, at most "
        "2147483647: at 11025 frames per second it is 363.825");
  for (const char* sizes : {"80ms+", "+80ms", "80ms++160ms", "80ms,160ms", "..1s/1", "1../1",
                            "40ms..1s/", "40ms..1s/x", "-1+4"})
    CHECK_THAT(refusal({{"size", "4"}, {"sizes", sizes}}),
               Contains("\" contains \"") && Contains("\", which must be "));
}

TEST_CASE("a range ascends in whole steps, and is for the rule random only") {
  for (const char* sizes :
       {"320..320/1", "640..320/320", "320..1000/320", "0..320/320", "320..640/0"}) {
    CAPTURE(sizes);
    CHECK_THAT(refusal({{"rule", "random"}, {"size", "320"}, {"sizes", sizes}}),
               Contains("must be a range whose end exceeds its start, by a multiple of its step"));
  }
  CHECK(refusal({{"size", "40ms"}, {"sizes", "40ms..1s/40ms"}}) ==
        "sizes = \"40ms..1s/40ms\" must be a list of 2 to 16 lengths: a range needs rule = "
        "\"random\"");
}

TEST_CASE("size must be one of sizes") {
  CHECK(refusal({{"size", "100ms"}, {"sizes", "80ms+160ms"}}) ==
        "size = \"100ms\" must be one of sizes, which are 1280, 2560 frames");
  CHECK(refusal({{"rule", "random"}, {"size", "100ms"}, {"sizes", "40ms..1s/40ms"}}) ==
        "size = \"100ms\" must be one of sizes, which are 640 to 16000 in steps of 640 frames");
}

TEST_CASE("with sizes, bodies lie end to end") {
  CHECK(refusal(with(four, {{"step", "100ms"}})) ==
        "step = \"100ms\" cannot be combined with sizes: then bodies lie end to end");
  CHECK(rule(with(four, {{"step", "0"}})) == rule(four));
}

TEST_CASE("first differs from each size by the same number of frames") {
  const ChunkRule longer = rule(with(four, {{"first", "350ms"}}));
  CHECK(longer.first_body(2560) == 3040);  // 190 ms
  CHECK(longer.width() == 10720);
  CHECK(longer.chunker_spec().first == 0);
  const ChunkRule shorter = rule(with(four, {{"first", "300ms"}}));
  CHECK(shorter.first_body(1280) == 960);
  CHECK(shorter.width() == 10240);
  CHECK(shorter.shortest_step() == 960);
}

TEST_CASE("every first body has at least one frame, and every window at most 2147483647") {
  rule({{"size", "20"}, {"sizes", "10+20"}, {"first", "11"}});
  CHECK(refusal({{"size", "20"}, {"sizes", "10+20"}, {"first", "10"}}) ==
        "first = \"10\" is too short: it differs from size by as many frames as for each of sizes, "
        "so the first body for the smallest of sizes would have 0 frames");
  rule({{"size", "1"}, {"sizes", "1+2147483646"}, {"left", "1"}});
  CHECK(refusal({{"size", "1"}, {"sizes", "1+2147483646"}, {"left", "2"}})
            .starts_with("sizes = \"1+2147483646\" is too long: "));
  CHECK(refusal({{"size", "1"}, {"sizes", "1+2147483646"}, {"first", "3"}})
            .starts_with("first = \"3\" is too long: "));
}

TEST_CASE("the rule endpoint is refused with the key that ends segments") {
  CHECK_THAT(refusal({{"size", "4"}, {"rule", "endpoint"}}),
             Contains("rule = \"endpoint\" must be fixed, adaptive or random") &&
                 Contains("the key endpoint of the pipeline"));
  CHECK(refusal({{"size", "4"}, {"rule", "vad"}}) ==
        "rule = \"vad\" must be fixed, adaptive or random");
}

TEST_CASE("sizes cannot be combined with a preset") {
  CHECK(refusal({{"preset", "silero-16k"}, {"sizes", "512+1024"}}) ==
        "sizes = \"512+1024\" cannot be combined with preset: only align and pad can");
}

TEST_CASE("a list and a range are written as they are read") {
  CHECK(sizes_text(SizeList({1280, 2560})) == "1280+2560");
  CHECK(sizes_text(SizeList(640, 16000, 640)) == "640..16000/640");
  CHECK(sizes_text({"80ms", "160ms", "320ms"}) == "80ms+160ms+320ms");
}

TEST_CASE("the JSON of a rule without sizes does not contain their keys") {
  CHECK(to_json({.spec = {.size = 1600, .left = 160}}) ==
        R"({"size":1600,"step":0,"first":0,"left":160,"right":0,"min":0,"tail":"every_start",)"
        R"("align":"body","pad":"zero"})");
}

TEST_CASE("the JSON of a rule with sizes has a list of frames or a range") {
  CHECK_THAT(to_json(rule(with(four, {{"rule", "adaptive"}}))),
             Contains(R"("rule":"adaptive","sizes":[1280,2560,5120,10240]})"));
  CHECK_THAT(to_json(rule(with(four, {{"rule", "random"}, {"seed", "7"}}))),
             Contains(R"("sizes":[1280,2560,5120,10240],"seed":7,"per":"chunk"})"));
  CHECK_THAT(to_json(rule({{"rule", "random"}, {"size", "80ms"}, {"sizes", "40ms..1s/40ms"}})),
             Contains(R"("sizes":{"from":640,"to":16000,"step":640})"));
}

TEST_CASE("a rule is read back from its JSON") {
  const RuleKeys all = {{"first", "350ms"}, {"left", "10ms"},    {"right", "20ms"}, {"min", "5"},
                        {"tail", "cover"},  {"align", "packed"}, {"pad", "repeat"}};
  for (const ChunkRule& one :
       {rule(with(four, all)), rule(with(four, {{"rule", "adaptive"}})),
        rule(with({{"rule", "random"},
                   {"size", "80ms"},
                   {"sizes", "40ms..1s/40ms"},
                   {"seed", "9223372036854775807"},
                   {"per", "stream"}},
                  all)),
        rule({{"size", "100ms"}, {"step", "50ms"}}), rule({{"preset", "silero-16k"}})}) {
    const auto read = rule_from_json(to_json(one), {.rate = 16000});
    INFO(to_json(one));
    REQUIRE(read.has_value());
    CHECK(*read == one);
  }
}

TEST_CASE("a number in JSON is printed as it was given") {
  CHECK_THAT(rule_from_json(R"({"size":0.1})", {}).error().message,
             Catch::StartsWith("size = \"0.1\" must be frames"));
}

TEST_CASE("in JSON a length in quotes has a unit") {
  for (const char* text : {R"({"size":"100"})", R"({"size":4,"sizes":["4",8]})",
                           R"({"rule":"random","size":4,"sizes":{"from":"2","to":4,"step":2}})"}) {
    const auto rule = rule_from_json(text, {});
    REQUIRE(!rule.has_value());
    CHECK(rule.error().message.ends_with(unit_missing));
  }
  CHECK(rule_from_json(R"({"size":"100ms"})", {.rate = 16000})->spec.size == 1600);
}

TEST_CASE("invalid JSON of a rule is an error") {
  for (const char* text : {"", "[]", "{", "7"})
    CHECK(rule_from_json(text, {}).error().message ==
          "the chunk rule is not a JSON object: " + std::string(text));
  CHECK(rule_from_json(R"({"size":4,"sizes":[]})", {}).error().key == "sizes");
  CHECK(rule_from_json(R"({"size":4,"sizes":{"from":4}})", {}).error().key == "sizes");
  CHECK(rule_from_json(R"({"size":4,"sizes":[[4],[8]]})", {}).error().key == "sizes");
  CHECK(rule_from_json(R"({"size":null})", {}).error().key == "size");
}

}  // namespace
}  // namespace millrace
