// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "load/protocols/openai.h"
#include "tests/load/recording_sink.h"

using namespace millrace;
using namespace millrace::load;

namespace {

struct OpenAiSessionFixture {
  explicit OpenAiSessionFixture(bool named = false)
      : clients({.model = "m\"1", .rate = 24'000, .named = named}) {
    REQUIRE(at.effect_of(R"({"type":"session.created","session":{}})").empty());
    update = at.take_written();
    REQUIRE(at.effect_of(R"({"type":"session.updated","session":{}})") == "opened ");
  }

  OpenAiClients clients;
  SessionUnderTest at{clients};
  std::string update;
};

std::string event(std::string_view type, std::string_view members) {
  return R"({"event_id":"e",)" + std::string(members) +
         R"(,"type":"conversation.item.input_audio_transcription.)" + std::string(type) + "\"}";
}

}  // namespace

TEST_CASE("OpenAI: a URL without a path gets the default one, and a parameter is not repeated") {
  CHECK(OpenAiClients({}).target("s") == "/v1/realtime?intent=transcription");
  CHECK(OpenAiClients({.target = "/"}).target("s") == "/v1/realtime?intent=transcription");
  CHECK(OpenAiClients({.target = "/x?model=m"}).target("s") == "/x?model=m&intent=transcription");
  CHECK(OpenAiClients({.target = "?intent=i"}).target("s") == "/v1/realtime?intent=i");
}

TEST_CASE("OpenAI: the stream is open once its settings are confirmed") {
  OpenAiSessionFixture it;
  CHECK(it.update ==
        R"({"type":"session.update","session":{"type":"transcription","audio":{"input":{"format":)"
        R"({"type":"audio/pcm","rate":24000},"transcription":{"model":"m\"1"},)"
        R"("turn_detection":null}}}} )");
  CHECK(it.at.effect_of(R"({"type":"session.updated"})").empty());
  CHECK(it.at.effect_of(R"({"type":"session.created"})").empty());
  CHECK(it.at.written.empty());
}

TEST_CASE("OpenAI: the prompt is the stream's name for the own worker") {
  OpenAiSessionFixture it(true);
  CHECK(it.update.find(R"("transcription":{"model":"m\"1","prompt":"b1-7-0"})") !=
        std::string::npos);
}

TEST_CASE("OpenAI: audio is base64, and other formats have their names") {
  OpenAiSessionFixture it;
  it.at.send("abcd");
  CHECK(it.at.written == R"({"type":"input_audio_buffer.append","audio":"YWJjZA=="} )");
  OpenAiClients mulaw({.format = SampleFormat::mulaw});
  SessionUnderTest at(mulaw);
  at.effect_of(R"({"type":"session.created"})");
  CHECK(at.written.find(R"("format":{"type":"audio/pcmu"},"turn_detection")") != std::string::npos);
  CHECK_THROWS_AS(OpenAiClients({.format = SampleFormat::opus}), std::invalid_argument);
}

TEST_CASE("OpenAI: a delta is text without a position, and the own worker's words are rows") {
  const std::string delta = event("delta", R"("delta":" r-7-0-1600-3200 r-7-0-3200-4800")");
  OpenAiSessionFixture text, rows(true);
  CHECK(text.at.effect_of(delta) == "text ");
  CHECK(rows.at.effect_of(delta) == "result:0/1600-3200 result:1/3200-4800 ");
  CHECK(rows.at.effect_of(event("delta", R"("delta":"rest")")) ==
        "result:2/18446744073709551615-0 ");
}

TEST_CASE("OpenAI: a transcription is the final of the commit with its item, in any order") {
  OpenAiSessionFixture it;
  it.at.commit(10);
  it.at.commit(20);
  it.at.commit(30);
  for (const char* item : {"a", "b", "c"})
    CHECK(it.at
              .effect_of(R"({"type":"input_audio_buffer.committed","item_id":")" +
                         std::string(item) + "\"}")
              .empty());
  CHECK(it.at.effect_of(event("completed", R"("item_id":"b","transcript":"")")) == "finished:20 ");
  CHECK(it.at.effect_of(event("failed", R"("item_id":"a","error":{})")) == "failed:10 ");
  CHECK(it.at.effect_of(event("completed", R"("item_id":"x")")).empty());
  CHECK(it.at.effect_of(event("completed", R"("item_id":"c")")) == "finished:30 ");
}

TEST_CASE("OpenAI: the client closes once every commit is completed") {
  OpenAiSessionFixture it;
  it.at.commit(10);
  it.at.end();
  CHECK(it.at.take_written() == R"({"type":"input_audio_buffer.commit"} )");
  CHECK_FALSE(it.at.session->has_ended());
  it.at.effect_of(R"({"type":"input_audio_buffer.committed","item_id":"a"})");
  CHECK(it.at.effect_of(event("completed", R"("item_id":"a")")) == "finished:10 ");
  CHECK(it.at.take_written() == "close ");
  CHECK(it.at.session->has_ended());
}

TEST_CASE("OpenAI: an error event ends the stream with its code and message") {
  OpenAiSessionFixture it;
  it.at.effect_of(R"({"type":"error","error":{"code":"no_worker","message":"all are away"}})");
  CHECK_FALSE(it.at.continues);
  CHECK(it.at.session->why() == "no_worker: all are away");
}

TEST_CASE("OpenAI: a message that is no event ends the stream") {
  for (const char* message : {"", "[]", "{", "1"}) {
    OpenAiSessionFixture it;
    it.at.effect_of(message);
    CHECK_FALSE(it.at.continues);
    CHECK(it.at.session->why() == "invalid message from the service");
  }
  OpenAiSessionFixture it;
  CHECK(it.at.effect_of(R"({"type":"conversation.item.added"})").empty());
  CHECK(it.at.effect_of(R"({"no":1})").empty());
  CHECK(it.at.continues);
}
