// SPDX-License-Identifier: Apache-2.0
// Wrong requests and messages of a client of Deepgram's protocol, and streams that fail.
#include "chunker/ready_row.h"
#include "tests/transport/sessions/deepgram/listened.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE_METHOD(Listened, "after its end, a client may keep the connection alive, and no more") {
  closes();
  says(R"({"type":"KeepAlive"})");
  closes();
  CHECK(client.seen.empty());
  sends("abcd");
  finalizes();
  CHECK(seen() == Lines{"Error", "Error"});
  CHECK(stats.rejected[MessageFault::unknown_stream].value() == 2);
}

TEST_CASE_METHOD(Listened, "a message that is none is an error, and the stream goes on") {
  for (const char* text : {"", "{", "[]", "7", R"({"type":7})", R"({"type":"Configure"})",
                           R"({"type":"input_audio_buffer.commit"})", R"({"type":"flush"})"}) {
    says(text);
    REQUIRE(client.seen.size() == 1);
    CHECK_THAT(client.seen[0], StartsWith(R"({"type":"Error","variant":"SchemaError",)") &&
                                   Contains(R"("description":")") && Contains(R"("message":")"));
    (void)seen();
  }
  CHECK(stats.rejected[MessageFault::schema].value() == 8);
  sends("abcdefgh");
  answer(R"({"text":"good"})");
  CHECK(seen() == Lines{"interim good"});
}

TEST_CASE_METHOD(Listened, "half a sample waits for its other half") {
  sends("abcdefg");
  sends("h");
  answer(R"({"text":"good"})");
  CHECK(seen() == Lines{"interim good"});
}

TEST_CASE_METHOD(Listened, "a client that reads no replies is not read any more") {
  client.stop_reading();
  for (int i = 0; i < 100'000; ++i) client.text("{}");
  settle();
  CHECK(talk().queue().unsent() < limits.unsent + 1000);
  CHECK(client.unreceived() > 99'000);
}

TEST_CASE_METHOD(Listened, "a client that sends much at once is read as fast as it is taken") {
  sends(std::string(3000, 'x'));
  CHECK(stream().lane.rows.size() == max_ready_rows);
  finalizes();
  CHECK(client.unreceived() == 1);
}

TEST_CASE_METHOD(Listened, "a silent client loses its connection in the words of the protocol") {
  says(R"({"type":"KeepAlive"})");
  scope.sweep(Clock::now() + 31s);
  settle();
  CHECK_THAT(client.seen.back(), Contains(R"("variant":"NetError","code":"idle")"));
  CHECK(client.closed == 1011);
  CHECK(talk().queue().closing()->reason == "NET-0001");
}

TEST_CASE_METHOD(Listened, "a stream that fails ends the connection with an error") {
  SECTION("its audio is wrong") {
    stream().stream.fail(ErrorCode::values, "no such packet", Clock::now());
    settle();
    CHECK(client.closed == 1008);
    CHECK(talk().queue().closing()->reason == "DATA-0000");
  }
  SECTION("there is no worker") {
    stream().stream.fail(ErrorCode::no_worker, "none came", Clock::now());
    settle();
    CHECK(client.closed == 1013);
  }
  CHECK(seen() == Lines{"Error"});
}

TEST_CASE_METHOD(DeepgramProtocol, "a request is refused in the words of the protocol") {
  CHECK(status("/v1/listen") == 400);
  CHECK_THAT(body, StartsWith(R"({"err_code":"Bad Request","err_msg":"encoding is missing: audio )"
                              R"(in a container is not supported","request_id":")"));
  REQUIRE(body.size() > 38);
  CHECK(body[body.size() - 38] != '"');
  CHECK(status("/v1/listen?encoding=mulaw", "chat") == 400);
  admission.refuses = RequestError{.status = 415, .parameter = "rate", .message = "is odd"};
  CHECK(status("/v1/listen?encoding=mulaw") == 400);
  CHECK_THAT(body, Contains("sample_rate is odd"));
  admission.refuses = RequestError{.status = 503, .message = "full"};
  CHECK(status("/v1/listen?encoding=mulaw") == 503);
  CHECK_THAT(body, StartsWith(R"({"err_code":"Service Unavailable","err_msg":"full",)"));
  CHECK_THAT(protocol.answer(unauthenticated("no token"), scope).body,
             StartsWith(R"({"err_code":"INVALID_AUTH","err_msg":"no token","request_id":")"));
}

TEST_CASE_METHOD(DeepgramProtocol, "the subprotocol token is echoed, and its token is not") {
  CHECK(status("/v1/listen?encoding=mulaw", "token, secret") == 101);
  CHECK(echoed == "token");
}
