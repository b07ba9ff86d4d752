// SPDX-License-Identifier: Apache-2.0
#include "schemas/transcripts/transcript.h"

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

TEST_CASE("the stable part of a transcript is the beginning of its text") {
  const auto stable = [](const char* answer) { return parse_transcript(answer, false)->stable; };
  CHECK(stable(R"({"text":"good mor","stable":"good"})") == 4);
  CHECK(stable(R"({"text":"good mor","stable":"bad"})") == 0);
  CHECK(stable(R"({"text":"good mor","stable":7})") == 0);
  CHECK(stable(R"({"text":"good mor"})") == 0);
  CHECK(stable(R"({"text":"good","stable":"go","final":true})") == 4);
}

TEST_CASE("words that are none are left out") {
  const auto transcript = parse_transcript(
      R"({"text":"a b","words":[{"word":"a","start":1,"end":1.5,"confidence":0.9},{"word":"b"},7,)"
      R"({"word":8,"start":1,"end":2},{"word":"c","start":2,"end":3}]})",
      true);
  REQUIRE(transcript->words.size() == 2);
  CHECK(transcript->words[0].word == "a");
  CHECK(transcript->words[0].start == 1);
  CHECK(transcript->words[0].end == 1.5);
  CHECK(transcript->words[0].confidence == 0.9);
  CHECK_FALSE(transcript->words[1].confidence);
  CHECK(parse_transcript(R"({"text":"a","words":7})", true)->words.empty());
}

TEST_CASE("a plain string is a transcript where the worker is known to answer them") {
  using Kind = Answer::Kind;
  CHECK(transcript_of({Kind::text, "good"}, false)->text == "good");
  CHECK(transcript_of({Kind::json, R"("go\u006fd")"}, true)->text == "good");
  CHECK(transcript_of({Kind::json, R"({"text":"good"})"}, true)->stable == 4);
  for (const Answer& other : {Answer{Kind::json, "7"}, Answer{Kind::bytes, "good"},
                              Answer{Kind::error, "bad"}, Answer{Kind::none, ""}})
    CHECK_FALSE(transcript_of(other, true));
}

}  // namespace millrace
