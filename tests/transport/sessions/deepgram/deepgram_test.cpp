// SPDX-License-Identifier: Apache-2.0
// A client of Deepgram's protocol, with streams whose rows the test answers.
#include "transport/sessions/deepgram/deepgram.h"

#include "chunker/row.h"
#include "tests/transport/sessions/deepgram/listened.h"

using namespace millrace;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

struct Quiet : Listened {
  Quiet() : Listened("") {}
};

struct Eventful : Listened {
  Eventful() : Listened("interim_results=true&vad_events=true&utterance_end_ms=1000") {}
};

}  // namespace

TEST_CASE_METHOD(Listened, "a result has all members") {
  sends("abcdefgh");
  answer(R"({"text":"good day","words":[{"word":"good","start":0,"end":0.1,"confidence":0.5},)"
         R"({"word":"day","start":0.1,"end":0.2}]})");
  REQUIRE(client.seen.size() == 1);
  const std::string& result = client.seen[0];
  CHECK_THAT(
      result,
      StartsWith(
          R"({"type":"Results","channel_index":[0,1],"start":0,"duration":0.00025,)"
          R"("is_final":false,"speech_final":false,"from_finalize":false,)"
          R"("channel":{"alternatives":[{"transcript":"good day","confidence":0.75,"words":[)"
          R"({"word":"good","start":0,"end":0.1,"confidence":0.5,"punctuated_word":"good"},)"
          R"({"word":"day","start":0.1,"end":0.2,"confidence":1,"punctuated_word":"day"}]}]},)"
          R"("metadata":{"request_id":")"));
  CHECK_THAT(result, Contains(R"("model_info":{"name":"default","version":"","arch":""},)"
                              R"("model_uuid":"00000000-0000-0000-0000-000000000000"}})"));
}

TEST_CASE_METHOD(Quiet, "interim results are sent only if they are asked for") {
  sends("abcdefgh");
  answer(R"({"text":"good"})");
  CHECK(seen().empty());
  CHECK(stream().stats.results.value() == 0);
  finalizes();
  answer(R"({"text":"good day"})");
  CHECK(seen() == Lines{"final finalize good day"});
}

TEST_CASE_METHOD(Listened, "each Finalize has a final result, also without audio or an answer") {
  finalizes();
  answer(R"({"text":""})");
  CHECK(seen() == Lines{"final finalize "});
  sends("abcdefgh");
  answer(R"({"text":"good"})");
  finalizes();
  answer("", Answer::Kind::none);
  CHECK(seen() == Lines{"interim good", "final finalize good"});
  sends("abcdefgh");
  finalizes();
  answer("broken", Answer::Kind::error);
  answer("7");
  CHECK(seen() == Lines{"final finalize "});
}

TEST_CASE_METHOD(Listened, "a part begins where the one before was final") {
  sends("abcdefgh");
  finalizes();
  answer(R"({"text":"one"})");
  answer(R"({"text":"one"})");
  sends("abcdefghabcdefgh");
  (void)seen();
  answer(R"({"text":"two","final":true})");
  CHECK_THAT(client.seen.back(), Contains(R"("start":0.00025,"duration":0.00025)"));
  answer(R"({"text":"three"})");
  CHECK_THAT(client.seen.back(), Contains(R"("start":5e-04,"duration":0.00025)"));
  CHECK(seen() == Lines{"final two", "interim three"});
}

TEST_CASE_METHOD(Listened, "a part begins with its first row, in the right context of the last") {
  sends("abcdefgh");
  talk().segment_ended({.seq = 0, .position = 16'000, .by_endpoint = true});
  const Answer answered{.kind = Answer::Kind::json, .data = R"({"text":"good"})"};
  talk().result({.seq = 1, .begin = 8'000, .end = 24'000, .flags = flag::segment}, answered);
  talk().queue().unmark_results();  // the stream gave none
  settle();
  CHECK_THAT(client.seen.back(), Contains(R"("start":0.5,"duration":1,)"));
}

TEST_CASE_METHOD(Listened, "the text of a lost worker is final, and the next one's begins anew") {
  sends("abcdefgh");
  answer(R"({"text":"old"})");
  const Answer answered{.kind = Answer::Kind::json, .data = R"({"text":"new"})"};
  talk().result({.seq = 1, .begin = 4, .end = 8, .flags = flag::reset}, answered);
  talk().queue().unmark_results();  // the stream gave none
  settle();
  CHECK(seen() == Lines{"interim old", "final old", "interim new"});
}

TEST_CASE_METHOD(Eventful, "an endpoint ends an utterance") {
  sends("abcdefgh");
  talk().speech_began(0.25);
  answer(R"({"text":"good"})");
  talk().segment_ended({.seq = 1, .position = 16'000, .by_endpoint = true});
  sends("abcdefgh");
  answer(R"({"text":"good day","words":[{"word":"day","start":0.5,"end":0.75}]})");
  CHECK_THAT(client.seen[0], Contains(R"("channel":[0,1],"timestamp":0.25)"));
  CHECK_THAT(client.seen.back(), Contains(R"("channel":[0,1],"last_word_end":0.75)"));
  CHECK(seen() == Lines{"SpeechStarted", "interim good", "final speech good day", "UtteranceEnd"});
}

TEST_CASE_METHOD(Eventful, "the begin of speech follows the utterance before it") {
  sends("abcdefgh");
  answer(R"({"text":"good"})");
  talk().segment_ended({.seq = 1, .position = 16'000, .by_endpoint = true});
  talk().speech_began(1.5);
  settle();
  CHECK(seen() == Lines{"SpeechStarted", "interim good"});
  talk().settled(16'000);
  settle();
  CHECK(seen() == Lines{"final speech good", "UtteranceEnd", "SpeechStarted"});
}

TEST_CASE_METHOD(Eventful, "a segment without speech or text is not reported") {
  sends("abcd");
  talk().segment_ended({.seq = 0, .position = 4, .by_endpoint = true});
  talk().settled(4);
  closes();
  CHECK(seen().empty());
  answer("");
  CHECK(seen() == Lines{"Metadata"});
}

TEST_CASE_METHOD(Listened, "a closed stream gets its results, its metadata and code 1000") {
  sends("abcdefghabcd");
  answer(R"({"text":"good"})");
  closes();
  CHECK(talk().has_ended());
  answer(R"({"text":"good day"})");
  CHECK_THAT(client.seen.back(),
             Contains(R"("sha256":"0000)") && Contains(R"("duration":0.000375,"channels":1)"));
  CHECK(seen() == Lines{"interim good", "final good day", "Metadata"});
  CHECK(client.closed == 1000);
}

TEST_CASE_METHOD(Listened, "an empty message closes the stream, also before any audio") {
  sends("");
  sends("");
  answer("", Answer::Kind::none);
  CHECK_THAT(client.seen.back(), Contains(R"("duration":0,)"));
  CHECK(seen() == Lines{"Metadata"});
  CHECK(client.closed == 1000);
}

TEST_CASE_METHOD(Listened, "when the service stops, a stream gets its results and its metadata") {
  sends("abcd");
  stream().stream.drain(Clock::now());
  answer(R"({"text":"last"})");
  CHECK(seen() == Lines{"final last", "Metadata"});
  CHECK(client.closed == 1012);
}

TEST_CASE_METHOD(DeepgramProtocol,
                 "where no endpoint can be detected, only the client ends segments") {
  admission.has_detector = false;
  CHECK(status("/v1/listen?encoding=mulaw&endpointing=300") == 101);
  CHECK(admission.requests[0].ends == SegmentEnds{.by = SegmentEnds::By::client});
}
