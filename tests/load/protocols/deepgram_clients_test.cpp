// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "load/protocols/deepgram.h"
#include "tests/load/recording_sink.h"

using namespace millrace;
using namespace millrace::load;

namespace {

struct DeepgramSessionFixture {
  explicit DeepgramSessionFixture(bool named = false) : clients({.named = named}) {}

  DeepgramClients clients;
  SessionUnderTest at{clients};
};

std::string results(std::string_view times, std::string_view transcript = "",
                    std::string_view more = "") {
  return R"({"type":"Results","channel_index":[0,1],)" + std::string(times) +
         R"(,"is_final":true,"channel":{"alternatives":[{"transcript":")" +
         std::string(transcript) + R"(","confidence":1,"words":[]}]})" + std::string(more) + "}";
}

constexpr std::string_view finalized = R"(,"from_finalize":true)";
const std::string second(32'000, '\0');  // of audio

}  // namespace

TEST_CASE("Deepgram: the target has the parameters that the URL lacks") {
  CHECK(DeepgramClients({.model = "nova-3", .rate = 8'000}).target("s") ==
        "/v1/listen?encoding=linear16&sample_rate=8000&channels=1&interim_results=true"
        "&model=nova-3");
  CHECK(DeepgramClients({.target = "/x?interim_results=false&encoding=mulaw",
                         .format = SampleFormat::mulaw,
                         .named = true})
            .target("b1-0-0") ==
        "/x?interim_results=false&encoding=mulaw&sample_rate=16000&channels=1&keyterm=b1-0-0");
  CHECK_THROWS_AS(DeepgramClients({.format = SampleFormat::f32le}), std::invalid_argument);
}

TEST_CASE("Deepgram: the stream is open at once, and audio is sent as it is") {
  DeepgramSessionFixture it;
  CHECK(it.at.sink.record == "opened ");
  it.at.send("abc");
  it.at.commit(1);
  it.at.end();
  CHECK(it.at.written == R"(abc {"type":"Finalize"} {"type":"CloseStream"} )");
}

TEST_CASE(
    "Deepgram: results have the position of their audio, and the own worker's words are rows") {
  DeepgramSessionFixture text, rows(true);
  text.at.sink.record = rows.at.sink.record = "";
  CHECK(text.at.effect_of(results(R"("start":1.5,"duration":0.25)")) == "text:1750 ");
  CHECK(rows.at.effect_of(results(R"("start":0,"duration":1)", "r-7-0-0-1600 r-7-0-1600-3200")) ==
        "result:0/0-1600 result:1/1600-3200 ");
  CHECK(rows.at.effect_of(results(R"("start":0,"duration":1)")).empty());
  CHECK(text.at.effect_of(R"({"type":"Results","channel":{"alternatives":[]}})") == "text:0 ");
}

TEST_CASE("Deepgram: the position of a final shows which commit it answers") {
  DeepgramSessionFixture it(true);
  it.at.sink.record = "";
  for (const int due : {10, 20, 30}) {
    it.at.send(second);
    it.at.commit(due);
  }
  CHECK(it.at.effect_of(results(R"("start":0,"duration":1.0)", "", finalized)) == "finished:10 ");
  CHECK(it.at.effect_of(results(R"("start":1,"duration":1.99)", "", finalized)) == "finished:30 ");
  CHECK(it.at.effect_of(results(R"("start":3,"duration":0)", "", finalized)).empty());
  it.at.commit(40);
  CHECK(it.at.effect_of(results(R"("start":1,"duration":1)", "", finalized)) == "finished:40 ");
}

TEST_CASE("Deepgram: the stream ends with Metadata, and an error breaks it") {
  DeepgramSessionFixture it;
  CHECK_FALSE(it.at.session->has_ended());
  it.at.effect_of(R"({"type":"Metadata","duration":1.0,"channels":1})");
  CHECK(it.at.continues);
  CHECK(it.at.session->has_ended());
  it.at.effect_of(R"({"type":"Error","variant":"SchemaError","description":"no such thing"})");
  CHECK_FALSE(it.at.continues);
  CHECK(it.at.session->why() == "no such thing");
}
