// SPDX-License-Identifier: Apache-2.0
#include "chunker/presets.h"

#include <catch2/catch.hpp>

namespace millrace {
namespace {

constexpr RuleTarget features_at(double rate) { return {.rate = rate, .features = true}; }

Result<ChunkRule, SpecError> rule(const char* name, const RuleTarget& target) {
  return rule_for(*find_preset(name), target);
}

TEST_CASE("a preset for the stream's kind and rate is used unchanged") {
  CHECK(rule("silero-16k", {.rate = 16000})->spec == Spec{.size = 512, .left = 64});
  CHECK(rule("wenet-16", features_at(100))->spec == Spec{.size = 64, .first = 67, .left = 3});
}

TEST_CASE("a feature preset for audio is converted to samples, with 15 ms more right context") {
  const auto of_16k = rule("zipformer-32", {.rate = 16000});
  CHECK(of_16k->spec == Spec{.size = 5120, .right = 2080 + 240});
  CHECK(of_16k->align == Align::packed);
  CHECK(rule("wenet-16", {.rate = 8000})->spec ==
        Spec{.size = 5120, .first = 5360, .left = 240, .right = 120});
  CHECK(rule("returnn-100-75", {.rate = 16000})->spec ==
        Spec{.size = 16000, .step = 12000, .right = 240});
}

TEST_CASE("a preset for another kind or rate of stream is an error that names it") {
  CHECK(rule("silero-16k", {.rate = 8000}).error().message ==
        "preset = \"silero-16k\" takes audio at 16000 frames per second, not audio at 8000 frames "
        "per second");
  CHECK(rule("silero-16k", features_at(100)).error().message ==
        "preset = \"silero-16k\" takes audio at 16000 frames per second, not features at 100 "
        "frames per second");
  CHECK(rule("wenet-16", features_at(12.5)).error().message ==
        "preset = \"wenet-16\" takes features at 100 frames per second, not features at 12.5 "
        "frames per second");
}

TEST_CASE("a rate at which feature windows are not whole samples is refused") {
  CHECK(rule("wenet-16", {.rate = 22050}).error().message ==
        "preset = \"wenet-16\" takes features, or audio of a rate that gives whole frames in 10 ms "
        "and in 15 ms, not 22050");
  CHECK(rule("wenet-16", {.rate = 0}).has_error());
  CHECK(rule("wenet-16", {.rate = 1e11}).has_error());
}

}  // namespace
}  // namespace millrace
