// SPDX-License-Identifier: Apache-2.0
#include "commands/streaming/transcript.h"

#include <catch2/catch.hpp>

namespace millrace {

TEST_CASE("a transcript is a JSON object with a text") {
  CHECK(parse_transcript(R"({"text":"hello","score":7})", false)->text == "hello");
  for (const char* answer :
       {R"({"text":7})", R"({"Text":"a"})", R"(["text"])", R"("text")", "7", "{"})
    CHECK_FALSE(parse_transcript(answer, false));
}

TEST_CASE("a transcript is final if it says so, otherwise at the last row of the segment") {
  const auto is_final = [](const char* answer, bool is_last) {
    return parse_transcript(answer, is_last)->final;
  };
  CHECK(is_final(R"({"text":"","final":true})", false));
  CHECK_FALSE(is_final(R"({"text":"","final":false})", true));
  CHECK(is_final(R"({"text":""})", true));
  CHECK_FALSE(is_final(R"({"text":"","final":"no"})", false));
}

}  // namespace millrace
