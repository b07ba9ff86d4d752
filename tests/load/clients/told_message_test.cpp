// SPDX-License-Identifier: Apache-2.0
#include "load/clients/told_message.h"

#include <catch2/catch.hpp>
#include <string>

#include "schemas/server_messages.h"

using namespace millrace;
using load::read_told;

TEST_CASE("a result as our service writes it is read") {
  const ResultHead head{.seq = 12, .begin = 1600, .end = 3200, .flags = 17};
  std::string text;
  append_result(text, head, {Answer::Kind::json, R"({"error":"of the answer, not of the row"})"});
  const auto told = read_told(text);
  REQUIRE(told);
  CHECK(told->seq == 12);
  CHECK(told->begin == 1600);
  CHECK(told->end == 3200);
  CHECK_FALSE(told->failed);
  CHECK(told->data == R"({"error":"of the answer, not of the row"})");
}

TEST_CASE("a gap is told by the flags alone") {
  std::string with, without;
  append_result(with, {.flags = 8 | 2}, {Answer::Kind::json, "1"});
  append_result(without, {.flags = 2}, {Answer::Kind::json, R"(["GAP"])"});
  CHECK(read_told(with)->gap);
  CHECK_FALSE(read_told(without)->gap);
}

TEST_CASE("an error in the place of an answer is seen") {
  for (const std::uint8_t flags : {std::uint8_t{0}, std::uint8_t{17}}) {
    std::string failed, too_long;
    append_result(failed, {.flags = flags}, {Answer::Kind::error, "broken"});
    append_too_long(too_long, {.flags = flags});
    CHECK(read_told(failed)->failed);
    CHECK(read_told(too_long)->failed);
  }
}

TEST_CASE("whatever else is written is left to a parser") {
  CHECK_FALSE(read_told(R"({"type":"ready","stream":"a","pipeline":"default","frames":0})"));
  CHECK_FALSE(read_told(R"({"type": "result", "seq": 1, "begin": 0, "end": 5})"));
  CHECK_FALSE(read_told(R"({"type":"result","seq":-1,"begin":0,"end":5})"));
  CHECK_FALSE(read_told(""));
}
