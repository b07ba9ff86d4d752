// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/openai/segment_text.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

Transcript said(std::string text, std::size_t stable) {
  return {.text = std::move(text), .stable = stable};
}
Transcript finally(std::string text) {
  const std::size_t stable = text.size();
  return {.text = std::move(text), .stable = stable, .final = true};
}

}  // namespace

TEST_CASE("only stable text is returned, and only once") {
  SegmentText text;
  text.add(said("good mor", 4));
  CHECK(text.take_stable() == "good");
  text.add(said("good morning", 4));
  CHECK(text.take_stable().empty());
  text.add(finally("good morning all"));
  CHECK(text.take_stable() == " morning all");
  CHECK(text.text() == "good morning all");
}

TEST_CASE("several final texts of a segment are one text") {
  SegmentText text;
  text.add(finally("one."));
  CHECK(text.take_stable() == "one.");
  text.add(said("tw", 0));
  CHECK(text.take_stable().empty());
  text.add(finally("two."));
  CHECK(text.take_stable() == " two.");
  text.add(finally(""));
  CHECK(text.text() == "one. two.");
}

TEST_CASE("text that the worker has lost stays") {
  SegmentText text;
  text.add(said("good mor", 4));
  CHECK(text.take_stable() == "good");
  text.begin_anew();
  text.add(said("ning", 0));
  CHECK(text.text() == "good mor ning");
  CHECK(text.take_stable() == " mor");
  CHECK(text.take_stable(true) == " ning");
}

TEST_CASE("text that changes after it was returned is not returned again") {
  SegmentText text;
  text.add(said("good morning", 4));
  CHECK(text.take_stable() == "good");
  text.add(finally("bad morning"));
  CHECK(text.take_stable(true).empty());
  CHECK(text.text() == "bad morning");
}

TEST_CASE("the text of a segment is limited") {
  SegmentText text;
  const std::string long_text(300'000, 'x');
  for (int i = 0; i < 10; ++i) text.add(finally(long_text));
  CHECK(text.text().size() < 1'300'000);
}
