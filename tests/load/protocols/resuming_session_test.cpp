// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "load/protocols/millrace_v1.h"
#include "tests/load/recording_sink.h"

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;

namespace {

StreamRequest resuming() {
  StreamRequest request{.pipeline = "p"};
  request.resume = true;
  return request;
}

// Frames of two bytes; the client keeps 4.
std::string ready(std::string_view token, std::string_view more = R"("frames":0,"commands":0)") {
  return R"({"type":"ready","stream":"b1-7-0","frame_bytes":2,"keep":4,"resume":")" +
         std::string(token) + R"(",)" + std::string(more) + "}";
}

std::string numbered(int seq, std::string_view number) {
  return R"({"type":"result","seq":)" + std::to_string(seq) +
         R"(,"begin":0,"end":2,"begin_s":0,"end_s":0,"flags":[],"data":{"n":9},)" +
         std::string(number) + "}";
}

struct ResumingSessionFixture {
  ResumingSessionFixture() {
    REQUIRE(at.sink.record.empty());
    REQUIRE(at.effect_of(ready("T1")) == "opened ");
  }
  ClientSession& session() { return *at.session; }
  std::string lose_and_resume(std::string_view more) {
    REQUIRE(session().next_connection(Time(1h)) == Time(1h));
    REQUIRE_FALSE(session().is_connected());
    request = session().resuming_request();
    return at.effect_of(ready("T2", more));
  }

  MillraceV1 protocol{resuming()};
  SessionUnderTest at{protocol};
  RequestedStream request;
};

}  // namespace

TEST_CASE_METHOD(ResumingSessionFixture,
                 "what the service has not received is sent again over the next connection") {
  CHECK(protocol.target("b1-7-0") == "/v1/stream?pipeline=p&id=b1-7-0&resume=1");
  at.send("aabb");
  at.commit(10);
  at.send("cc");
  at.end();
  CHECK(at.take_written() == R"(aabb {"type":"flush","mark":0} cc {"type":"end"} )");
  CHECK(lose_and_resume(R"("frames":1,"commands":0,"resumed":true)") == "resumed ");
  CHECK(request.subprotocols == "millrace.v1, resume.T1");
  CHECK(request.target.find("&id=b1-7-0&resume=1&n=0&") != std::string::npos);
  CHECK(at.take_written() == R"(bb {"type":"flush","mark":0} cc {"type":"end"} )");
}

TEST_CASE_METHOD(ResumingSessionFixture, "input without a connection follows with the next one") {
  REQUIRE(session().next_connection(Time(1h)));
  at.send("aa");
  at.end();
  CHECK(at.take_written().empty());
  CHECK(at.effect_of(ready("T2", R"("frames":0,"commands":0,"resumed":true)")) == "resumed ");
  CHECK(at.take_written() == R"(aa {"type":"end"} )");
}

TEST_CASE_METHOD(ResumingSessionFixture, "a message is reported once over all connections") {
  at.send("aabb");
  CHECK(at.effect_of(numbered(0, R"("n":0)")) == "result:0 ");
  CHECK(lose_and_resume(R"("frames":2,"commands":0,"resumed":true)") == "resumed ");
  CHECK(request.target.find("&n=1&") != std::string::npos);
  CHECK(at.effect_of(numbered(0, R"("n":0)")).empty());
  CHECK(at.effect_of(numbered(1, R"("n":1)")) == "result:1 ");
  CHECK(at.continues);
  at.effect_of(numbered(3, R"("n":3)"));
  CHECK_FALSE(at.continues);
  CHECK_FALSE(session().can_resume());
}

TEST_CASE_METHOD(ResumingSessionFixture, "a stream that was opened anew is reported as such") {
  at.send("aabb");
  CHECK(at.effect_of(numbered(0, R"("n":0,"ack":[1,1,0,1,0])")) == "result:0 ");
  CHECK(lose_and_resume(R"("frames":1,"commands":0,"resumed":false)") == "reopened ");
  CHECK(request.target.find("&seq=1&from=1&") != std::string::npos);
  CHECK(at.take_written() == "aabb bb ");
  CHECK(at.effect_of(numbered(0, R"("n":1)")).empty());
  CHECK(at.effect_of(numbered(1, R"("n":2)")) == "result:1 ");
}

TEST_CASE_METHOD(ResumingSessionFixture, "the client keeps as many frames as the service allows") {
  at.send("aabbccdd");
  CHECK(session().has_room());
  at.send("ee");
  CHECK(at.take_written() == "aabbccdd ");
  CHECK_FALSE(session().has_room());
  at.effect_of(R"({"type":"ack","seq":0,"frames":2,"commands":0,"begin":2,"skip":0})");
  CHECK(at.take_written() == "ee ");
  CHECK(session().has_room());
}

TEST_CASE("messages are acknowledged with the next packet, at most once a second") {
  MillraceV1 protocol(resuming());
  SessionUnderTest at(protocol);
  const auto receive = [&](const std::string& text, Time now) {
    REQUIRE(at.session->received(true, bytes_in(text), now, at.sink, at));
    return at.take_written();
  };
  receive(ready("T1"), Time(10s));
  CHECK(receive(numbered(0, R"("n":0)"), Time(10s)).empty());
  CHECK(receive(numbered(1, R"("n":1)"), Time(11s)).empty());
  at.send("aa");
  CHECK(at.take_written() == R"({"type":"ack","n":2} aa )");
  at.end();
  CHECK(at.take_written() == R"({"type":"end"} )");
  CHECK(receive(numbered(2, R"("n":2)"), Time(11s + 999ms)).empty());
  CHECK(receive(numbered(3, R"("n":3)"), Time(12s)) == R"({"type":"ack","n":4} )");
}

TEST_CASE_METHOD(ResumingSessionFixture,
                 "refusals are retried within 15 s, except those that are final") {
  CHECK(session().can_resume());
  REQUIRE(session().next_connection(Time(1h)) == Time(1h));
  CHECK(session().outlasts("503"));
  CHECK(session().outlasts("409"));
  CHECK_FALSE(session().outlasts("409"));
  CHECK_FALSE(session().outlasts("404"));
  const auto next = session().next_connection(Time(1h));
  REQUIRE(next);
  CHECK(*next > Time(1h));
  CHECK_FALSE(session().next_connection(Time(1h + 15s)));
}

TEST_CASE_METHOD(ResumingSessionFixture, "a stream that has ended or failed does not resume") {
  const std::string_view last = GENERATE(R"({"type":"closed","frames":0,"chunks":0,"n":0})",
                                         R"({"type":"error","code":"no_worker","message":"m"})");
  at.effect_of(last);
  CHECK_FALSE(session().can_resume());
}
