// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/received_result.h"

#include <catch2/catch.hpp>
#include <string>

#include "schemas/server_messages.h"

using namespace millrace;
using load::read_result;

TEST_CASE("a result in the form of this service is read") {
  const ResultHead head{.seq = 12, .begin = 1600, .end = 3200, .flags = 17};
  std::string text;
  append_result(text, head, {Answer::Kind::json, R"({"error":"of the answer, not of the row"})"});
  const auto result = read_result(text);
  REQUIRE(result);
  CHECK(result->seq == 12);
  CHECK(result->begin == 1600);
  CHECK(result->end == 3200);
  CHECK_FALSE(result->failed);
  CHECK(result->data == R"({"error":"of the answer, not of the row"})");
}

TEST_CASE("only the flags show a gap") {
  std::string with, without;
  append_result(with, {.flags = 8 | 2}, {Answer::Kind::json, "1"});
  append_result(without, {.flags = 2}, {Answer::Kind::json, R"(["GAP"])"});
  CHECK(read_result(with)->gap);
  CHECK_FALSE(read_result(without)->gap);
}

TEST_CASE("an error in place of an answer is detected") {
  for (const std::uint8_t flags : {std::uint8_t{0}, std::uint8_t{17}}) {
    std::string failed, too_long;
    append_result(failed, {.flags = flags}, {Answer::Kind::error, "broken"});
    append_too_long(too_long, {.flags = flags});
    CHECK(read_result(failed)->failed);
    CHECK(read_result(too_long)->failed);
  }
}

TEST_CASE("any other text is left to a parser") {
  CHECK_FALSE(read_result(R"({"type":"ready","stream":"a","pipeline":"default","frames":0})"));
  CHECK_FALSE(read_result(R"({"type": "result", "seq": 1, "begin": 0, "end": 5})"));
  CHECK_FALSE(read_result(R"({"type":"result","seq":-1,"begin":0,"end":5})"));
  CHECK_FALSE(read_result(""));
}

TEST_CASE("the number of a result is at its end, whatever the answer contains") {
  const ResumePoint point{.seq = 4, .frames = 5, .commands = 6, .begin = 7, .skip = 8};
  for (const MessageNumber& number : {MessageNumber{12}, MessageNumber{13, point}}) {
    std::string text;
    append_result(text, {.seq = 3, .end = 1600}, {Answer::Kind::json, R"([{"a":1,"n":2}])"});
    append_message_number(text, number);
    const auto read = load::read_numbered_result(text);
    REQUIRE(read);
    CHECK(read->number == number);
    CHECK(read->result.seq == 3);
    CHECK(read->result.data == R"([{"a":1,"n":2}])");
  }
  std::string without;
  append_result(without, {}, {Answer::Kind::json, R"({"a":1,"n":2})"});
  CHECK_FALSE(load::read_numbered_result(without));
}
