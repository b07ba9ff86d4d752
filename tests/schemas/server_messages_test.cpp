// SPDX-License-Identifier: Apache-2.0
#include "schemas/server_messages.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

constexpr ResultHead head{.seq = 3, .begin = 4800, .end = 6400, .rate = 16000, .flags = 16};

std::string result(Answer::Kind kind, std::string data) {
  std::string out;
  append_result(out, head, {kind, std::move(data)});
  return out;
}

}  // namespace

TEST_CASE("a result carries the worker's JSON as it is") {
  CHECK(result(Answer::Kind::json, R"({"text": "hi"})") ==
        R"({"type":"result","seq":3,"begin":4800,"end":6400,"begin_s":0.3,"end_s":0.4,)"
        R"("flags":["LAST"],"data":{"text": "hi"}})");
}

TEST_CASE("a result has the batch of its row and its times, if they were requested") {
  using namespace std::chrono_literals;
  const Explanation explanation{
      .in_batch = {.batch = BatchId{812}, .slot = Slot{3}, .rows = 7, .trigger = Trigger::deadline},
      .at = {.arrived = Time(1s),
             .ready = Time(1s + 100us),
             .closed = Time(1s + 2ms),
             .copied = Time(1s + 2020us),
             .taken = Time(1s + 2050us),
             .done = Time(1s + 6150us),
             .written = {}}};
  ResultHead explained = head;
  explained.explanation = &explanation;
  std::string out;
  append_result(out, explained, {Answer::Kind::json, "1"});
  CHECK(
      out ==
      R"({"type":"result","seq":3,"begin":4800,"end":6400,"begin_s":0.3,"end_s":0.4,"flags":["LAST"],)"
      R"("explain":{"slot":3,"batch":812,"rows":7,"trigger":"deadline",)"
      R"("ms":{"chunk":0.1,"batch":1.9,"copy":0.02,"handover":0.03,"compute":4.1}},"data":1})");
  CHECK(parse_server_message(out)->explain ==
        R"({"slot":3,"batch":812,"rows":7,"trigger":"deadline",)"
        R"("ms":{"chunk":0.1,"batch":1.9,"copy":0.02,"handover":0.03,"compute":4.1}})");
  out.clear();
  append_result(out, explained, {Answer::Kind::error, ""});
  CHECK_THAT(out, Catch::Contains(R"("explain":{"slot":3,)") &&
                      Catch::EndsWith(R"("error":"worker_failed"})"));
}

TEST_CASE("a text becomes a JSON string") {
  CHECK_THAT(result(Answer::Kind::text, "say \"hi\""), Catch::EndsWith(R"(,"data":"say \"hi\""})"));
}

TEST_CASE("a failed answer has an error in place of the value") {
  CHECK_THAT(result(Answer::Kind::error, "out of memory at 0x12"),
             Catch::EndsWith(R"("flags":["LAST"],"error":"worker_failed"})"));
}

TEST_CASE("the other messages are those of the protocol") {
  std::string out;
  append_ready(out, {.stream = "kitchen", .pipeline = "default"});
  append_flushed(out += '\n', 7);
  append_rejected(out += '\n', ErrorCode::values, "half a frame", 0);
  append_warning(out += '\n', ErrorCode::values, "too loud");
  append_error(out += '\n', ErrorCode::no_worker, "no worker was available in time");
  append_goaway(out += '\n', std::chrono::milliseconds(1000));
  append_closed(out += '\n', 48000, 30);
  CHECK(out ==
        R"({"type":"ready","stream":"kitchen","pipeline":"default","frames":0}
{"type":"flushed","mark":7}
{"type":"rejected","code":"values","message":"half a frame","frames":0}
{"type":"warning","code":"values","message":"too loud"}
{"type":"error","code":"no_worker","message":"no worker was available in time"}
{"type":"goaway","retry_after_ms":1000}
{"type":"closed","frames":48000,"chunks":30})");
}

TEST_CASE("messages to a client that resumes have a number and results a place to resume from") {
  std::string out;
  append_ready(out, {.stream = "kitchen",
                     .pipeline = "default",
                     .frame_bytes = 2,
                     .frames = 1600,
                     .commands = 3,
                     .keep = 320000,
                     .resume = "T",
                     .resumed = true});
  append_flushed(out += '\n', 7, 41);
  append_message_number(out, {.n = 12});
  append_result(out += '\n', {.seq = 42, .begin = 4, .end = 8, .rate = 4},
                {Answer::Kind::text, "x"});
  append_message_number(out, {.n = 13, .point = ResumePoint{40, 1600, 3, 4, 2}});
  append_ack(out += '\n', {40, 1600, 3, 4, 2});
  CHECK(out ==
        R"({"type":"ready","stream":"kitchen","pipeline":"default","frames":1600,"commands":3,)"
        R"("frame_bytes":2,"keep":320000,"resumed":true,"resume":"T"}
{"type":"flushed","mark":7,"seq":41,"n":12}
{"type":"result","seq":42,"begin":4,"end":8,"begin_s":1,"end_s":2,"flags":[],"data":"x",)"
        R"("n":13,"ack":[40,1600,3,4,2]}
{"type":"ack","seq":40,"frames":1600,"commands":3,"begin":4,"skip":2})");
}

TEST_CASE("a client that resumes reads the numbers that the service writes") {
  std::string out;
  append_ready(
      out,
      {.stream = "s", .pipeline = "p", .commands = 3, .keep = 9, .resume = "T", .resumed = false});
  const auto ready = parse_server_message(out);
  REQUIRE(ready);
  CHECK(ready->commands == 3);
  CHECK(ready->keep == 9);
  CHECK(ready->resume == "T");
  CHECK(ready->resumed == false);
  append_result(out = "", {.seq = 42}, {Answer::Kind::text, "x"});
  append_message_number(out, {.n = 13, .point = ResumePoint{40, 1600, 3, 4, 2}});
  const auto result = parse_server_message(out);
  REQUIRE(result);
  CHECK(result->n == 13);
  CHECK(result->point == ResumePoint{40, 1600, 3, 4, 2});
  append_ack(out = "", {40, 1600, 3, 4, 2});
  const auto ack = parse_server_message(out);
  REQUIRE(ack);
  CHECK(ack->type == ServerMessage::Type::ack);
  CHECK(ack->point == ResumePoint{40, 1600, 3, 4, 2});
}

TEST_CASE("a client reads a warning") {
  std::string out;
  append_warning(out, ErrorCode::values, "too loud");
  const auto warning = parse_server_message(out);
  REQUIRE(warning);
  CHECK(warning->type == ServerMessage::Type::warning);
  CHECK(warning->code == "values");
  CHECK(warning->message == "too loud");
}

TEST_CASE("a client reads what the service writes") {
  std::string out;
  append_rejected(out, ErrorCode::values, "not a number", 12);
  const auto rejected = parse_server_message(out);
  REQUIRE(rejected);
  CHECK(rejected->type == ServerMessage::Type::rejected);
  CHECK(rejected->code == "values");
  CHECK(rejected->frames == 12);

  const auto answer = parse_server_message(result(Answer::Kind::text, "x"));
  REQUIRE(answer);
  CHECK(answer->type == ServerMessage::Type::result);
  CHECK(answer->seq == 3);
  CHECK(answer->begin == 4800);
  CHECK(answer->end == 6400);
  CHECK(answer->begin_s == 0.3);
  CHECK(answer->end_s == 0.4);
  CHECK(answer->flags == 16);
}

TEST_CASE("a client reads an answer's value as it was written, and a string without its quotes") {
  const std::string value = R"({"p": 1.50, "data": [1e2, "}"]})";
  const std::string json = result(Answer::Kind::json, value);
  CHECK(parse_server_message(json)->kind == Answer::Kind::json);
  CHECK(parse_server_message(json)->data == value);
  const std::string text = result(Answer::Kind::text, "say \"hi\"");
  CHECK(parse_server_message(text)->kind == Answer::Kind::text);
  CHECK(parse_server_message(text)->text == "say \"hi\"");
  const std::string error = result(Answer::Kind::error, "");
  CHECK(parse_server_message(error)->kind == Answer::Kind::error);
  CHECK(parse_server_message(error)->text == "worker_failed");
}

TEST_CASE("a message of a worker is read as it was written") {
  std::string json;
  append_message(json, {.number = 2, .seq = 3}, {Answer::Kind::json, R"({"token": 1.50})"});
  CHECK(json == R"({"type":"message","number":2,"seq":3,"data":{"token": 1.50}})");
  const auto message = parse_server_message(json);
  CHECK(message->type == ServerMessage::Type::message);
  CHECK(message->number == 2);
  CHECK(message->seq == 3);
  CHECK(message->data == R"({"token": 1.50})");
  std::string text;
  append_message(text, {}, {Answer::Kind::text, "a\"b"});
  CHECK(text == R"({"type":"message","number":0,"seq":0,"data":"a\"b"})");
  CHECK(parse_server_message(text)->text == "a\"b");
}

TEST_CASE("a client ignores unknown types, and detects a text that is not a message") {
  CHECK(parse_server_message(R"({"type":"news"})")->type == ServerMessage::Type::unknown);
  CHECK_FALSE(parse_server_message("[]"));
  CHECK_FALSE(parse_server_message("{"));
}
