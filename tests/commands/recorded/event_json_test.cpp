// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/event_json.h"

#include <catch2/catch.hpp>

namespace millrace::recordings {
namespace {

using recording::RecordedAnswer;
using recording::RecordedEvent;

std::string text(const recording::RecordedItem& item) {
  std::string line;
  append_item(line, item, 1000);
  return line;
}

std::string event(const Event& event, std::int64_t after) {
  return text(RecordedEvent{.event = event, .at = from_wire(1000 + after), .position = 48'000});
}

std::string answer(Answer::Kind kind, std::string_view data) {
  return text(RecordedAnswer{.seq = 4, .batch = BatchId{17}, .kind = kind, .data = data});
}

TEST_CASE("an event has its cause, its mark, its position and its exact time") {
  CHECK(event({.kind = Event::Kind::flush, .mark = 7}, 3'250'000'000) ==
        R"({"event":"flush","count":0,"cause":"client","mark":7,"position":48000,"at":3.25})");
  CHECK(event({.kind = Event::Kind::gap, .cause = Cause::recorder, .count = 9}, 1) ==
        R"({"event":"gap","count":9,"cause":"recorder","mark":null,"position":48000,)"
        R"("at":0.000000001})");
  CHECK(event({.kind = Event::Kind::end}, -1'500'000'000).ends_with(R"("at":-1.5})"));
}

TEST_CASE("the open of a stream that is opened anew has the number of rows before it") {
  CHECK(event({.count = 48'000, .rows = 9}, 0) ==
        R"({"event":"open","count":48000,"cause":"client","mark":null,"rows":9,)"
        R"("position":48000,"at":0})");
  CHECK(event({}, 0).find("rows") == std::string::npos);
}

TEST_CASE("a message of a client has its text") {
  const Event event{.kind = Event::Kind::set, .count = 7};
  CHECK(text(RecordedEvent{.event = event, .at = from_wire(1000), .text = "{\"a\":\n1}"}) ==
        R"({"event":"set","count":7,"cause":"client","mark":null,"position":0,"at":0,)"
        R"("data":{"a": 1}})");
}

TEST_CASE("answers are printed by their kind") {
  CHECK(answer(Answer::Kind::json, "{\"text\":\n\"a\"}") ==
        R"({"answer":"json","seq":4,"batch":17,"data":{"text": "a"}})");
  CHECK(answer(Answer::Kind::json, "{broken").ends_with(R"("data":"{broken"})"));
  CHECK(answer(Answer::Kind::text, "a\nb\"").ends_with(R"("data":"a\nb\""})"));
  CHECK(answer(Answer::Kind::bytes, "abcd").ends_with(R"("data":"YWJjZA=="})"));
  CHECK(answer(Answer::Kind::error, "no model")
            .ends_with(R"("answer":"error","seq":4,"batch":17,)"
                       R"("data":"no model"})"));
}

TEST_CASE("totals have the digest in eight digits") {
  CHECK(text(recording::StreamTotals{.rows = 8,
                                     .frames = 12'800,
                                     .lost = 3,
                                     .digest = 0xa1b2c,
                                     .closing = 0,
                                     .complete = true}) ==
        R"({"closed":"end","complete":true,"rows":8,"frames":12800,"lost":3,"digest":"000a1b2c"})");
  CHECK(text(recording::StreamTotals{.closing = 99})
            .starts_with(R"({"closed":"unknown","complete":false)"));
}

}  // namespace
}  // namespace millrace::recordings
