// SPDX-License-Identifier: Apache-2.0
#include "replay/rows/answer_comparison.h"

#include <catch2/catch.hpp>

using namespace millrace;
using Answers = Answer::Kind;

namespace {

void recorded(AnswerComparison& comparison, std::uint64_t seq, std::string_view data,
              Answers kind = Answers::json) {
  comparison.recorded({.seq = seq, .kind = kind, .data = data});
}
void replayed(AnswerComparison& comparison, std::uint64_t seq, std::string data,
              Answers kind = Answers::json) {
  Row row;
  row.seq = seq;
  row.begin = 10 * seq;
  row.size = 10;
  comparison.replayed(row, {.kind = kind, .data = std::move(data)});
}
void finish(AnswerComparison& comparison) {
  comparison.recorded_all();
  comparison.replayed_all();
}

}  // namespace

TEST_CASE("equal answers have no difference, in any order of arrival") {
  AnswerComparison comparison;
  recorded(comparison, 0, "1");
  replayed(comparison, 0, "1");
  replayed(comparison, 1, "2");
  replayed(comparison, 2, "", Answers::none);
  replayed(comparison, 3, "4");
  recorded(comparison, 1, "2");
  recorded(comparison, 3, "4");
  finish(comparison);
  CHECK(comparison.has_recorded());
  CHECK_FALSE(comparison.difference());
}

TEST_CASE("the first row whose answer differs is found") {
  AnswerComparison comparison;
  for (std::uint64_t seq = 0; seq < 5; ++seq) {
    recorded(comparison, seq, "1");
    replayed(comparison, seq, seq < 3 ? "1" : "2");
  }
  finish(comparison);
  REQUIRE(comparison.difference());
  CHECK(comparison.difference()->seq == 3);
  CHECK(comparison.difference()->begin == 30);
  CHECK(comparison.difference()->end == 40);
  CHECK(comparison.difference()->recorded.data == "1");
  CHECK(comparison.difference()->replayed.data == "2");
}

TEST_CASE("an answer on one side only is a difference") {
  AnswerComparison comparison;
  SECTION("only recorded") {
    recorded(comparison, 0, "1");
    replayed(comparison, 0, "", Answers::none);
    finish(comparison);
    CHECK(comparison.difference()->replayed.kind == Answers::none);
  }
  SECTION("only recorded, to a row that a service did not answer") {
    recorded(comparison, 0, "1");
    recorded(comparison, 1, "1");
    replayed(comparison, 1, "1");
    finish(comparison);
    CHECK(comparison.difference()->seq == 0);
  }
  SECTION("only replayed") {
    replayed(comparison, 0, "1");
    recorded(comparison, 1, "1");
    finish(comparison);
    CHECK(comparison.difference()->recorded.kind == Answers::none);
  }
}

TEST_CASE("a text equals the JSON string, and errors are equal") {
  AnswerComparison comparison;
  recorded(comparison, 0, "\"hello\"");
  replayed(comparison, 0, "hello", Answers::text);
  recorded(comparison, 1, "RuntimeError: no memory", Answers::error);
  replayed(comparison, 1, "worker_failed", Answers::error);
  finish(comparison);
  CHECK_FALSE(comparison.difference());
  AnswerComparison bytes;
  recorded(bytes, 0, "1", Answers::bytes);
  replayed(bytes, 0, "1");
  CHECK(bytes.difference());
}

TEST_CASE("rows after the last answer before a missing part are not compared") {
  AnswerComparison comparison;
  recorded(comparison, 0, "1");
  comparison.cut();
  replayed(comparison, 0, "1");
  replayed(comparison, 1, "2");
  recorded(comparison, 7, "8");
  finish(comparison);
  CHECK(comparison.is_cut());
  CHECK_FALSE(comparison.difference());
}

TEST_CASE("a stream without recorded answers is recognised") {
  AnswerComparison comparison;
  replayed(comparison, 0, "1");
  finish(comparison);
  CHECK_FALSE(comparison.has_recorded());
}
