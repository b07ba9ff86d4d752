// SPDX-License-Identifier: Apache-2.0
// Invalid messages of an OpenAI client, refused and failed streams, and the upgrade.
#include "transport/sessions/openai/openai.h"

#include <catch2/catch.hpp>

#include "chunker/ready_row.h"
#include "tests/transport/sessions/openai/openai_session.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Lines = OpenAiSession::Lines;

namespace {

struct Upgrading {
  unsigned status(std::string target, std::string subprotocol = "") {
    HttpQuery query{.method = "GET",
                    .target = std::move(target),
                    .fields = {{"Host", "here"},
                               {"Connection", "Upgrade"},
                               {"Upgrade", "websocket"},
                               {"Sec-WebSocket-Version", "13"},
                               {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}};
    if (!subprotocol.empty()) query.fields.emplace_back("Sec-WebSocket-Protocol", subprotocol);
    const auto accepted = protocol.accept(query, scope, {.peer = "127.0.0.1:1"});
    return accepted ? 101 : accepted.error().status;
  }

  net::io_context context{1};
  ConnectionLimits limits;
  TransportStats stats;
  SessionScope scope{context.get_executor(), limits, stats};
  ChoosyAdmission admission;
  OpenAi protocol{admission, {}};
};

}  // namespace

TEST_CASE_METHOD(OpenAiSession, "a message that is none is an error, and the session continues") {
  const auto error = [this](std::string text) {
    says(std::move(text));
    const std::string last = client.seen.back();
    return string_value(member_text(member_text(last, "error"), "message"));
  };
  const std::string types =
      "must be session.update or input_audio_buffer.append, .commit or .clear";
  CHECK(error("{") == "must be a JSON object");
  CHECK(error("[]") == "must be a JSON object");
  CHECK(error(R"({"type":7})") == types);
  CHECK(error(R"({"type":"Finalize"})") == types);
  CHECK(error(R"({"type":"session.update"})") == "must be an object");
  CHECK(error(R"({"type":"input_audio_buffer.append"})") == "must be a string");
  CHECK(error(R"({"type":"input_audio_buffer.append","audio":7})") == "must be a string");
  for (const char* audio : {"abc", "ab=c", "ab c", "ab\\nc", "====", "abcd-_--"})
    CHECK(error(R"({"type":"input_audio_buffer.append","audio":")" + std::string(audio) +
                R"("})") == "must be base64");
  client.binary("abcd");
  settle();
  CHECK_THAT(client.seen.back(), Contains("messages must be text"));
  CHECK(stats.rejected[MessageFault::schema].value() == 14);
  CHECK(admission.requests.empty());
  appends("abcd");
  CHECK(admission.requests.size() == 1);
}

TEST_CASE_METHOD(OpenAiSession, "an error names the client's event") {
  says(R"({"type":"nonsense","event_id":"mine"})");
  CHECK_THAT(client.seen.back(), Contains(R"("event_id":"mine"}})"));
  says(R"({"type":"nonsense"})");
  CHECK_THAT(client.seen.back(), Contains(R"("event_id":null}})"));
  says(R"({"type":"nonsense","event_id":")" + std::string(600, 'x') + R"("})");
  CHECK_THAT(client.seen.back(), Contains(R"("event_id":null}})"));
}

TEST_CASE_METHOD(OpenAiSession, "audio may be written with escapes, and may be empty") {
  says(R"({"type":"input_audio_buffer.append","audio":""})");
  CHECK(admission.requests.empty());
  says(R"({"type":"input_audio_buffer\u002eappend","audio":"\/\/\u002fw"})");
  REQUIRE(admission.requests.size() == 1);
  CHECK(stream().stream.position() == 1);
}

TEST_CASE_METHOD(OpenAiSession,
                 "a client that sends much at once is read as fast as its stream takes it") {
  appends(std::string(3000, 'x'));
  CHECK(stream().lane.rows.size() == max_ready_rows);
  commits();
  CHECK(client.unreceived() == 1);
}

TEST_CASE_METHOD(OpenAiSession, "a stream that is refused for lack of room is only a close") {
  (void)seen();
  admission.refuses = RequestError{.status = 503, .message = "no slot", .reason = Refusal::no_room};
  appends("abcd");
  CHECK(seen().empty());
  CHECK(client.closed == 1013);
}

TEST_CASE_METHOD(OpenAiSession, "a stream that can never be opened is an error") {
  admission.refuses = RequestError{.status = 415, .parameter = "format", .message = "features"};
  appends("abcd");
  CHECK_THAT(client.seen.back(), Contains(R"("code":"format")") && Contains("features"));
  CHECK(client.closed == 4415);
}

TEST_CASE_METHOD(OpenAiSession, "a failed stream ends the session with an error") {
  appends("abcd");
  stream().stream.fail(ErrorCode::no_worker, "none came", Clock::now());
  settle();
  CHECK_THAT(client.seen.back(), Contains(R"("code":"no_worker")"));
  CHECK(client.closed == 1013);
}

TEST_CASE_METHOD(OpenAiSession,
                 "when the service stops, the turn is completed and the session closed") {
  appends("abcd");
  (void)seen();
  stream().stream.drain(Clock::now());
  answer(R"({"text":"last"})");
  CHECK(seen() == Lines{"committed 1", "delta 1 last", "completed 1 last"});
  CHECK(client.closed == 1012);
}

TEST_CASE_METHOD(Upgrading, "the upgrade is refused if no stream can be opened now") {
  CHECK(status("/v1/realtime?intent=transcription&model=m") == 101);
  CHECK(status("/v1/realtime", "realtime, openai-insecure-api-key.x") == 101);
  CHECK(status("/v1/realtime", "chat") == 400);
  admission.refuses = RequestError{.status = 503, .message = "full"};
  CHECK(status("/v1/realtime") == 503);
  admission.has_detector = false;
  CHECK(status("/v1/realtime") == 503);
  admission.refuses = RequestError{.status = 400, .parameter = "options", .message = "not JSON"};
  CHECK(status("/v1/realtime?model=%ff") == 400);
}

TEST_CASE_METHOD(Upgrading, "a refused upgrade is answered in the form of OpenAI's errors") {
  const RequestError wrong{.status = 415, .parameter = "rate", .message = "is odd"};
  CHECK(protocol.answer(wrong, scope).body ==
        R"({"error":{"message":"is odd","type":"invalid_request_error","param":"rate",)"
        R"("code":"format"}})");
  const RequestError full{.status = 503, .message = "full", .reason = Refusal::no_room};
  CHECK(protocol.answer(full, scope).body ==
        R"({"error":{"message":"full","type":"server_error","param":null,"code":"no_room"}})");
}
