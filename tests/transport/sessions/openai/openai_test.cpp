// SPDX-License-Identifier: Apache-2.0
// The turns of an OpenAI session, with streams whose rows the test answers.
#include "transport/sessions/openai/conversation.h"

#include <catch2/catch.hpp>

#include "tests/transport/sessions/openai/openai_session.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Lines = OpenAiSession::Lines;

namespace {

struct Listening : OpenAiSession {
  Listening() : OpenAiSession(true) { (void)seen(); }
};

}  // namespace

TEST_CASE_METHOD(OpenAiSession,
                 "a session is created unasked, and its first audio opens a stream") {
  CHECK(seen() == Lines{"session.created"});
  CHECK(admission.requests.empty());
  appends("abcdefgh");
  CHECK(admission.requests.size() == 1);
  CHECK(seen().empty());
}

TEST_CASE_METHOD(OpenAiSession,
                 "a committed turn gets what becomes stable, and then its transcript") {
  (void)seen();
  appends("abcdefghabcdefgh");
  answer(R"({"text":"good mor","stable":"good"})");
  answer(R"({"text":"good morn","stable":"good"})");
  CHECK(seen() == Lines{"delta 1 good"});
  appends("abcd");
  commits();
  CHECK(seen() == Lines{"committed 1"});
  answer(R"({"text":"good morning"})");
  CHECK(seen() == Lines{"delta 1  morning", "completed 1 good morning"});
}

TEST_CASE_METHOD(OpenAiSession,
                 "each commit is one turn, also of an empty buffer or without an answer") {
  (void)seen();
  commits();
  CHECK(seen() == Lines{"committed 1", "completed 1 "});
  appends("abcd");
  commits();
  commits();
  CHECK(seen() == Lines{"committed 2", "committed 3"});
  answer("", Answer::Kind::none);
  answer(R"({"text":""})");
  CHECK(seen() == Lines{"completed 2 ", "completed 3 "});
}

TEST_CASE_METHOD(OpenAiSession, "a turn names the turn before it") {
  appends("abcd");
  commits();
  CHECK_THAT(client.seen.back(), Contains(R"("previous_item_id":null)"));
  commits();
  CHECK_THAT(client.seen.back(), Contains("_2\"") && Contains(R"("previous_item_id":"item_)"));
}

TEST_CASE_METHOD(OpenAiSession, "nothing of a cleared turn is sent") {
  (void)seen();
  appends("abcdefgh");
  clears();
  CHECK(seen() == Lines{"cleared"});
  answer(R"({"text":"good","stable":"good"})");
  answer(R"({"text":""})");
  answer(R"({"text":"of the reset"})");
  CHECK(seen().empty());
  appends("abcdef");
  commits();
  answer(R"({"text":"next"})");
  CHECK(seen() == Lines{"committed 3", "delta 3 next", "completed 3 next"});
}

TEST_CASE_METHOD(OpenAiSession, "a failed row is a failed turn, and the next turn works") {
  (void)seen();
  appends("abcd");
  commits();
  answer("broken", Answer::Kind::error);
  CHECK(seen() == Lines{"committed 1", "failed 1"});
  appends("abcd");
  commits();
  answer(R"("plain")");
  CHECK(seen() == Lines{"committed 2", "delta 2 plain", "completed 2 plain"});
}

TEST_CASE_METHOD(OpenAiSession, "results without a message count as written") {
  appends("abcdefgh");
  answer(R"({"text":"mor"})");
  CHECK(stream().stats.results.value() == 0);
}

TEST_CASE_METHOD(Listening, "where speech is detected, a turn begins and ends by itself") {
  appends("abcdefgh");
  talk->speech_began(0.25);
  settle();
  CHECK_THAT(client.seen.back(), Contains(R"("audio_start_ms":250)"));
  answer(R"({"text":"good","stable":"good"})");
  talk->segment_ended({.seq = 1, .position = 16'000});
  settle();
  CHECK_THAT(client.seen[2], Contains(R"("audio_end_ms":1000)"));
  appends("abcdefgh");
  answer(R"({"text":"good day"})");
  CHECK(seen() == Lines{"speech_started 1", "delta 1 good", "speech_stopped 1", "committed 1",
                        "delta 1  day", "completed 1 good day"});
}

TEST_CASE_METHOD(Listening, "a segment without speech is no turn") {
  appends("abcd");
  talk->segment_ended({.seq = 0, .position = 4});
  talk->settled(4);
  settle();
  CHECK(seen().empty());
}

TEST_CASE_METHOD(Listening, "text begins a turn where no detector hears speech") {
  appends("abcdefgh");
  answer(R"({"text":"good","stable":"good"})");
  CHECK(seen() == Lines{"speech_started 1", "delta 1 good"});
}

TEST_CASE_METHOD(Listening, "a detection that the pipeline does not have is turned off") {
  admission.has_detector = false;
  updates(R"("turn_detection":{"type":"server_vad"})");
  CHECK_THAT(client.seen.back(),
             Contains("session.updated") && Contains(R"("turn_detection":null)"));
  appends("abcd");
  CHECK(admission.requests[0].ends.by == SegmentEnds::By::client);
}

TEST_CASE_METHOD(OpenAiSession,
                 "new options reach the stream, and another input opens the next stream") {
  appends("abcd");
  updates(R"("transcription":{"language":"de"})");
  (void)seen();
  CHECK(admission.requests.size() == 1);
  updates(R"("format":{"type":"audio/pcmu"})");
  CHECK(seen() == Lines{"session.updated"});
  appends("abcd");
  CHECK(admission.requests.size() == 1);
  answer(R"({"text":"old"})");
  CHECK(seen() == Lines{"committed 1", "delta 1 old", "completed 1 old"});
  REQUIRE(admission.requests.size() == 2);
  CHECK(admission.requests[1].format == "mulaw");
  CHECK(admission.requests[1].options == R"({"language":"de"})");
}

TEST_CASE_METHOD(OpenAiSession, "an update that cannot be honoured changes nothing") {
  updates(R"("format":{"type":"audio/pcm","rate":7})");
  CHECK_THAT(client.seen.back(), Contains(R"("type":"error")") &&
                                     Contains(R"("param":"session.audio.input.format.rate")"));
  appends("abcd");
  CHECK(admission.requests[0].rate == 24'000);
  CHECK(stats.rejected[MessageFault::schema].value() == 1);
}

TEST_CASE_METHOD(OpenAiSession, "a silent client keeps its connection for the next stream") {
  appends("abcd");
  (void)seen();
  after(31s);
  answer(R"({"text":"late"})");
  CHECK(seen() == Lines{"committed 1", "delta 1 late", "completed 1 late"});
  after(300s);
  CHECK_FALSE(client.closed);
  CHECK(stats.waiting.value() == 1);
  appends("abcd");
  CHECK(admission.requests.size() == 2);
  after(0s);
  CHECK(stats.waiting.value() == 0);
}

TEST_CASE_METHOD(OpenAiSession, "audio that comes while the stream ends opens the next stream") {
  appends("abcd");
  (void)seen();
  after(31s);
  appends("efgh");
  CHECK(admission.requests.size() == 1);
  answer(R"({"text":"late"})");
  CHECK(seen() == Lines{"committed 1", "delta 1 late", "completed 1 late"});
  CHECK(admission.requests.size() == 2);
  commits();
  answer(R"({"text":"new"})");
  CHECK(seen() == Lines{"committed 3", "delta 3 new", "completed 3 new"});
}

TEST_CASE_METHOD(OpenAiSession, "half a sample is no fault where the service ends the stream") {
  appends("abcde");
  (void)seen();
  after(31s);
  answer(R"({"text":"late"})");
  CHECK(seen() == Lines{"committed 1", "delta 1 late", "completed 1 late"});
}

TEST_CASE_METHOD(OpenAiSession, "an option that is withdrawn is not in force in the next stream") {
  updates(R"("transcription":{"language":"de","prompt":"x"})");
  appends("abcd");
  updates(R"("transcription":{"language":"en","prompt":"y"})");
  CHECK(admission.requests.size() == 1);
  updates(R"("transcription":{"language":"en"})");
  answer(R"({"text":"old"})");
  appends("abcd");
  REQUIRE(admission.requests.size() == 2);
  CHECK(admission.requests[1].options == R"({"language":"en"})");
}

TEST_CASE_METHOD(Listening, "a detection that one pipeline does not have is back in the next one") {
  updates(R"("transcription":{"model":"singer"})");
  CHECK_THAT(client.seen.back(), Contains(R"("turn_detection":null)"));
  updates(R"("transcription":{"model":"speaker"})");
  CHECK_THAT(client.seen.back(), Contains(R"("turn_detection":{"type":"server_vad")"));
}

TEST_CASE_METHOD(OpenAiSession, "a connection waits at most ten minutes for audio") {
  after(0s);
  after(601s);
  CHECK(seen() == Lines{"session.created"});
  CHECK(client.closed == 4408);
}
