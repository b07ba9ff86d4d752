// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/body_columns.h"

#include <catch2/catch.hpp>

namespace millrace::pocketsphinx {
namespace {

constexpr FrameType speech{};

TEST_CASE("the body begins after the columns of the left context") {
  const auto columns = body_columns(speech, R"({"size":1600,"left":400,"right":80})");
  REQUIRE(columns.has_value());
  CHECK(columns->body(0) == 400);
  CHECK(columns->body(400) == 400);
}

TEST_CASE("in packed rows the body begins after the real context") {
  const auto columns = body_columns(speech, R"({"size":1600,"left":400,"align":"packed"})");
  REQUIRE(columns.has_value());
  CHECK(columns->body(0) == 0);
  CHECK(columns->body(400) == 400);
}

TEST_CASE("bodies are end to end if step is 0 or equals size") {
  CHECK(body_columns(speech, R"({"size":1600,"step":0})").has_value());
  CHECK(body_columns(speech, R"({"size":1600,"step":1600})").has_value());
  CHECK(body_columns(speech, R"({"size":1600,"step":800})").error() ==
        "the chunk rule's bodies must lie end to end: step must be size");
}

TEST_CASE("a pipeline is refused unless it is mono s16 at 16 kHz") {
  const auto refusal = [](const FrameType& frames) {
    return body_columns(frames, R"({"size":1600})").error();
  };
  const std::string mono = "the pipeline must have mono audio at 16000 Hz";
  CHECK(refusal({.values = 2}) == mono);
  CHECK(refusal({.rate = 8000}) == mono);
  CHECK(refusal({.features = true}) == mono);
  CHECK(refusal({.element = Element::f32}) == "the pipeline's dtype must be s16");
}

TEST_CASE("a rule that cannot be read is refused") {
  CHECK(body_columns(speech, "").error() ==
        "the chunk rule cannot be read: the chunk rule is not a JSON object: ");
  CHECK(body_columns(speech, "[]").error() ==
        "the chunk rule cannot be read: the chunk rule is not a JSON object: []");
  CHECK_FALSE(body_columns(speech, R"({"size":1600,"left":"x"})").has_value());
}

}  // namespace
}  // namespace millrace::pocketsphinx
