// SPDX-License-Identifier: Apache-2.0
#include "chunker/spec.h"

#include <catch2/catch.hpp>

namespace millrace {
namespace {

ChunkRule parsed(const RuleKeys& keys, double rate = 16000) {
  return *parse_rule(keys, {.rate = rate});
}
std::string error_of(const RuleKeys& keys, double rate = 16000) {
  return parse_rule(keys, {.rate = rate}).error().message;
}

TEST_CASE("every key of a rule is read") {
  CHECK(parsed({{"size", "40"},
                {"step", "20"},
                {"first", "50"},
                {"left", "3"},
                {"right", "2"},
                {"min", "5"},
                {"tail", "cover"},
                {"align", "packed"},
                {"pad", "repeat"}}) ==
        ChunkRule{{40, 20, 50, 3, 2, Spec::Tail::cover, 5}, Align::packed, Pad::repeat});
}

TEST_CASE("a missing key has its default") {
  CHECK(parsed({{"size", "40"}}) == ChunkRule{{.size = 40}, Align::body, Pad::zero});
}

TEST_CASE("lengths may be times that are whole frames at the rate") {
  CHECK(parsed({{"size", "100ms"}, {"left", "0.1s"}, {"right", "2.5ms"}}).spec ==
        Spec{.size = 1600, .left = 1600, .right = 40});
  CHECK(parsed({{"size", "80ms"}}, 12.5).spec.size == 1);
  CHECK(parsed({{"size", "1h"}, {"left", "1min"}, {"right", "1000us"}}).spec ==
        Spec{.size = 57'600'000, .left = 960'000, .right = 16});
  CHECK(parsed({{"size", "30s"}}, 33.333333).spec.size == 1000);
  CHECK(error_of({{"size", "33ms"}}, 11025) ==
        "size = \"33ms\" must be whole frames, at most 2147483647: at 11025 frames per second it "
        "is 363.825");
}

TEST_CASE("an invalid length is refused with the allowed forms") {
  for (const char* text : {"", "abc", "-1", "+1", "1.5", "1e3", "0x10", "ms", "1 ms", "1m", "inf",
                           "nan", "100 ", "2147483648", "99999999999999999999"}) {
    INFO(text);
    CHECK(error_of({{"size", "4"}, {"left", text}}) ==
          "left = \"" + std::string(text) +
              "\" must be frames from 0 to 2147483647 (1600), or a time in us, ms, s, min or "
              "h without a space (\"100ms\", \"0.1s\")");
  }
  CHECK(parse_rule({{"size", "999999999999999s"}}, {}).has_error());
}

TEST_CASE("an unknown word is refused with the allowed words") {
  CHECK(error_of({{"size", "4"}, {"tail", "all"}}) ==
        "tail = \"all\" must be every_start, cover or drop");
  CHECK(error_of({{"size", "4"}, {"align", "left"}}) == "align = \"left\" must be body or packed");
  CHECK(error_of({{"size", "4"}, {"pad", "none"}}) == "pad = \"none\" must be zero or repeat");
  CHECK(
      error_of({{"preset", "silero"}}) ==
      "preset = \"silero\" must be silero-16k, funasr-600ms, moshi-80ms, wenet-16, zipformer-32, "
      "paraformer-60, emformer-16, nemo-70-0, nemo-70-1, nemo-70-6, nemo-70-13 or returnn-100-75");
}

TEST_CASE("an unknown, repeated or missing key is an error that names it") {
  CHECK(error_of({{"size", "4"}, {"stride", "2"}}) ==
        "stride = \"2\" is unknown: the key must be size, step, first, left, right, min, tail, "
        "align, pad, rule, sizes, seed, per or preset");
  CHECK(error_of({{"size", "4"}, {"size", "5"}}) ==
        "size = \"5\" is a repeated key: each key may be given once");
  CHECK(error_of({{"left", "4"}}) == "size is missing: a chunk rule needs size or preset");
  CHECK(parse_rule({{"size", "4"}, {"stride", "2"}}, {}).error().key == "stride");
}

TEST_CASE("only align and pad can be combined with a preset") {
  CHECK(parsed({{"preset", "silero-16k"}, {"align", "packed"}, {"pad", "repeat"}}) ==
        ChunkRule{{.size = 512, .left = 64}, Align::packed, Pad::repeat});
  CHECK(error_of({{"left", "3"}, {"preset", "silero-16k"}}) ==
        "left = \"3\" cannot be combined with preset: only align and pad can");
  CHECK(error_of({{"preset", "silero-16k"}, {"preset", "wenet-16"}}) ==
        "preset = \"wenet-16\" is a repeated key: each key may be given once");
}

TEST_CASE("lengths that contradict each other are refused") {
  CHECK(error_of({{"size", "0"}}) == "size = \"0\" must be at least 1 frame");
  CHECK(error_of({{"size", "5"}, {"first", "2"}, {"step", "3"}}) ==
        "first = \"2\" is too short: first + step must exceed size; size is 5 and step is 3");
  CHECK(parsed({{"size", "5"}, {"first", "3"}, {"step", "3"}}).spec.first == 3);
}

TEST_CASE("a window has at most 2147483647 frames") {
  CHECK(Spec{.size = 0x7fffffff}.check().has_value());
  CHECK(Spec{.size = 0x7fffff00, .left = 0xff}.check().has_value());
  CHECK(error_of({{"size", "2147483647"}, {"right", "1"}}) ==
        "size = \"2147483647\" is too long: with left and right it must be at most 2147483647");
  CHECK(Spec{.size = 1, .left = 0xffffffff, .right = 0xffffffff}.check().has_error());
  CHECK(Spec{.size = 1, .first = 0xffffffff}.check().error().key == "first");
}

TEST_CASE("sizes can change only if bodies are end to end") {
  CHECK(Spec{.size = 4}.check_size(9).has_value());
  CHECK(Spec{.size = 4, .step = 4}.check_size(9).error().message ==
        "step = \"4\" must be 0 if sizes change");
  CHECK(Spec{.size = 4}.check_size(0).error().message == "size = \"0\" must be at least 1 frame");
  CHECK(Spec{.size = 4, .left = 1}.check_size(0x7fffffff).has_error());
  CHECK(Spec{.size = 4}.check_size(std::uint64_t{1} << 40).has_error());
}

}  // namespace
}  // namespace millrace
