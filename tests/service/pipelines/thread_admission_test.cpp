// SPDX-License-Identifier: Apache-2.0
// Who gets a stream, and what a stream takes with it when it goes.
#include "service/pipelines/thread_admission.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <set>

#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;
using Catch::Matchers::Contains;
using test::Link;

namespace {

// Status, parameter.
using Refused = std::pair<unsigned, std::string>;

Refused refusal(AdmissionUnderTest& d, StreamRequest request) {
  const auto& error = d.open(std::move(request)).error;
  return error ? Refused(error->status, error->parameter) : Refused(101, "");
}

}  // namespace

TEST_CASE("what the pipeline does not take is refused by the parameter's name") {
  AdmissionUnderTest d;
  CHECK(refusal(d, {.pipeline = "other"}) == Refused(404, "pipeline"));
  CHECK(refusal(d, {.format = "opus"}) == Refused(415, "format"));
  CHECK(refusal(d, {.rate = 8000}) == Refused(415, "rate"));
  CHECK(refusal(d, {.channels = 2}) == Refused(415, "channels"));
  CHECK(refusal(d, {.dim = 3}) == Refused(415, "dim"));
  CHECK(refusal(d, {.channel = "0"}) == Refused(400, "channel"));
  CHECK(refusal(d, {.chunk = "x"}) == Refused(400, "chunk"));
  CHECK(refusal(d, {.pipeline = "features", .channels = 1}) == Refused(415, "channels"));
  CHECK(refusal(d, {.pipeline = "features", .dim = 4}) == Refused(415, "dim"));
  CHECK(d.shared.connections.taken() == 0);
  CHECK(d.hub().room().taken() == 0);
  CHECK(d.live() == 0);
}

TEST_CASE("no more streams are opened than there is memory for") {
  AdmissionUnderTest d;
  d.shared.streams = 1;
  auto& first = d.open();
  CHECK(first.stream);
  const auto& second = d.open();
  REQUIRE(second.error);
  CHECK(second.error->status == 503);
  CHECK(second.error->reason == Refusal::overload);
  d.shared.streams = 2;
  CHECK(d.open().stream);
}

TEST_CASE("what the pipeline takes may be said") {
  AdmissionUnderTest d;
  CHECK(d.open({.format = "f32le", .rate = 16000, .channels = 1}).stream);
  CHECK(d.open({.pipeline = "features", .rate = 100, .dim = 3}).stream);
}

TEST_CASE("explanations are refused by the parameter's name where they are not allowed") {
  AdmissionUnderTest d;
  CHECK(refusal(d, {.explain = true}) == Refused(400, "explain"));
  CHECK(d.shared.connections.taken() == 0);
}

TEST_CASE("results are explained to the stream that asked, not to the one beside it") {
  AdmissionUnderTest d(3, true);
  Link& worker = d.attach();
  auto& plain = d.open();
  auto& asked = d.open({.explain = true});
  (void)plain.told();
  (void)asked.told();
  d.send_row(plain);
  d.send_row(asked);
  d.answer(worker, {{Answer::Kind::json, "1"}});
  d.answer(worker, {{Answer::Kind::json, "2"}});
  CHECK_THAT(plain.told().at(0), !Contains("explain"));
  CHECK_THAT(
      asked.told().at(0),
      Contains(R"("explain":{"slot":1,"batch":2,"rows":1,"trigger":"deadline","ms":{"chunk":)"));
}

TEST_CASE("a stream that opens is told its name first, and where to send from") {
  AdmissionUnderTest d;
  CHECK(d.open({.id = "mic"}).told() ==
        std::vector<std::string>{
            R"({"type":"ready","stream":"mic","pipeline":"default","frames":0})"});
  CHECK_THAT(d.open().told().front(), Catch::Contains(R"("stream":"s-)"));
}

TEST_CASE("a name is its connection's until that is gone, whatever becomes of the stream") {
  AdmissionUnderTest d;
  auto& first = d.open({.id = "mic"});
  CHECK(refusal(d, {.id = "mic"}) == Refused(409, "id"));
  CHECK(d.shared.connections.taken() == 1);
  CHECK(d.hub().room().taken() == 1);
  AdmissionUnderTest::hang_up(first);
  CHECK(d.open({.id = "mic"}).stream);
}

TEST_CASE("a name that is taken is refused with the time when to come again") {
  AdmissionUnderTest d;
  REQUIRE(d.open({.id = "mic"}).stream);
  const auto& refused = d.open({.id = "mic"}).error;
  CHECK(refused->status == 409);
  CHECK(refused->retry_after.has_value());
}

TEST_CASE("clients that are refused at once come again at different times") {
  AdmissionUnderTest d(1);
  REQUIRE(d.open().stream);
  std::set<std::chrono::seconds> usual, memory_short;
  for (int i = 0; i < 200; ++i) usual.insert(*d.open().error->retry_after);
  d.shared.gate.memory_short = true;
  for (int i = 0; i < 200; ++i) memory_short.insert(*d.open().error->retry_after);
  using std::chrono::seconds;
  CHECK(usual == std::set{seconds(1), seconds(2), seconds(3), seconds(4), seconds(5)});
  CHECK(memory_short.size() == 11);
  CHECK(*memory_short.begin() == seconds(5));
  CHECK(*memory_short.rbegin() == seconds(15));
}

TEST_CASE("a refusal says which pipelines there are") {
  AdmissionUnderTest d;
  CHECK(d.open({.pipeline = "asr"}).error->message ==
        "there is no pipeline asr; there are: default, features");
}

TEST_CASE("a made-up name never is one that a client has") {
  AdmissionUnderTest d;
  REQUIRE(d.open({.id = "s-2"}).stream);
  CHECK_THAT(d.open().told().front(), Catch::Contains(R"("stream":"s-2x")"));
}

TEST_CASE("who finds no room is refused, gets nothing, and may come again") {
  AdmissionUnderTest d;
  auto& first = d.open();
  REQUIRE(d.open().stream);
  const auto& refused = d.open({.id = "late"}).error;
  CHECK(refused->status == 503);
  CHECK(refused->reason == Refusal::no_room);
  CHECK(refused->retry_after.has_value());
  CHECK(d.shared.connections.taken() == 2);
  // No worker had a row of it: its room is free when the lanes have heard of it.
  AdmissionUnderTest::hang_up(first);
  d.run();
  CHECK(d.open({.id = "late"}).stream);
}

TEST_CASE("the process has so many connections, whatever their pipelines") {
  AdmissionUnderTest d(2);
  REQUIRE(d.open().stream);
  auto& second = d.open({.pipeline = "features"});
  CHECK(d.open().error->reason == Refusal::limit_global);
  CHECK(d.hub().room().taken() == 1);
  AdmissionUnderTest::hang_up(second);
  d.run();
  CHECK(d.open().stream);
}

TEST_CASE("when the service stops, every stream is refused") {
  AdmissionUnderTest d;
  d.admission->refuse_all();
  const auto& error = d.open().error;
  CHECK(error->status == 503);
  CHECK(error->reason == Refusal::draining);
}

TEST_CASE("results reach the client in order, and count as written when they are") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open({.id = "mic"});
  (void)client.told();
  d.send_row(client);
  d.answer(worker, {{Answer::Kind::text, "a"}});
  CHECK(d.stats().results.value() == 1);
  CHECK_THAT(client.told().front(), Catch::Contains(R"("seq":0)") && Catch::Contains(R"("a")"));
  CHECK(d.stats().results.value() == 0);
  CHECK(d.stats().latency.sum() > 0);
}

TEST_CASE("a stream outlives its connection until its rows are done") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  AdmissionUnderTest::hang_up(client);
  d.run();
  CHECK(d.live() == 1);
  CHECK(d.shared.connections.taken() == 1);
  d.answer(worker);
  CHECK(d.live() == 1);
  d.answer(worker);  // ABORT
  CHECK(d.live() == 0);
  CHECK(d.shared.connections.taken() == 0);
  CHECK(d.hub().room().taken() == 0);
  CHECK(d.stats().open.value() == 0);
  CHECK(d.stats().buffer.value() == 0);
}

TEST_CASE("a stream that gets no session is lost") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  client.stream.reset();
  d.run();
  d.answer(worker);
  d.answer(worker);  // ABORT
  CHECK(d.live() == 0);
  CHECK(d.shared.connections.taken() == 0);
  CHECK(d.hub().room().taken() == 0);
  CHECK(d.stats().closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("a stream whose connection is too old ends as at a drain") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  (void)client.told();
  client.stream->drain(Clock::now());
  d.admission->table().drain(Clock::now());  // the service stops too
  const auto told = client.told();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::StartsWith(R"({"type":"goaway","retry_after_ms":)"));
  d.send_row(client);  // what was on its way
  d.answer(worker);
  d.answer(worker);  // END
  CHECK(client.told().back() == R"({"type":"closed","frames":4,"chunks":1})");
  CHECK(client.outbox.queue().closing()->code == 1012);
  CHECK(d.stats().closed[StreamClosing::drain].value() == 1);
}

TEST_CASE("a stream whose rows are done is kept until its connection is gone") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  client.stream->end(Clock::now());
  d.run();
  d.answer(worker);
  CHECK(d.hub().room().taken() == 0);
  CHECK(client.told().back() == R"({"type":"closed","frames":0,"chunks":0})");
  CHECK(d.live() == 1);
  AdmissionUnderTest::hang_up(client);
  CHECK(d.live() == 0);
}

TEST_CASE("a stream that is refused leaves a line, with room as a warning") {
  AdmissionUnderTest d;
  d.open({.id = "mic", .rate = 8000});
  CHECK(d.logged.stats.logged[LogLevel::warning].value() == 0);
  for (int i = 0; i < 3; ++i) d.open();
  CHECK(d.logged.stats.logged[LogLevel::warning].value() == 1);
  const std::string text = d.log();
  CHECK_THAT(text, Contains("level=info event=\"stream refused\" pipeline=default stream=mic "
                            "parameter=rate why=\"the pipeline takes 16000\"\n"));
  CHECK_THAT(text, Contains("level=warning event=\"stream refused\" pipeline=default "
                            "why=\"the pipeline has no room for another stream\"\n"));
}

TEST_CASE("a stream that ends by an error leaves a line with its name and the reason") {
  AdmissionUnderTest d;
  auto& client = d.open({.id = "mic"});
  client.stream->fail(ErrorCode::schema, "not a JSON object", Clock::now());
  AdmissionUnderTest::hang_up(client);
  const std::string text = d.log();
  CHECK_THAT(text, Contains("level=info event=\"stream ended\" pipeline=default stream=mic "
                            "code=schema why=\"not a JSON object\"\n"));
  CHECK_THAT(text, !Contains("stream aborted"));
}

TEST_CASE("a stream that no worker came for leaves a warning") {
  AdmissionUnderTest d;
  d.open({.id = "mic"});
  d.run();
  d.hub().drain(Clock::now());
  d.run();
  CHECK_THAT(d.log(), Contains("level=warning event=\"stream ended\" pipeline=default "
                               "stream=mic code=no_worker"));
}

TEST_CASE("a stream whose rows workers were lost over leaves a warning") {
  AdmissionUnderTest d;
  auto& client = d.open({.id = "mic"});
  const std::vector<std::byte> some(20'000);
  client.stream->frames(some, Clock::now());
  Stream* stream = d.admission->table().largest();
  REQUIRE(stream);
  stream->dropped(ErrorCode::worker_failed, Clock::now());
  CHECK_THAT(d.log(), Contains("level=warning event=\"stream ended\" pipeline=default "
                               "stream=mic code=worker_failed"));
}

TEST_CASE("a stream whose client vanishes leaves a line, one that has its results does not") {
  AdmissionUnderTest d;
  AdmissionUnderTest::hang_up(d.open({.id = "mic"}));
  d.run();
  Link& worker = d.attach();
  auto& whole = d.open({.id = "whole"});
  whole.stream->end(Clock::now());
  d.run();
  d.answer(worker);
  AdmissionUnderTest::hang_up(whole);
  const std::string text = d.log();
  CHECK_THAT(text, Contains("event=\"stream aborted\" pipeline=default stream=mic"));
  CHECK_THAT(text, !Contains("whole"));
}

TEST_CASE(
    "a stream whose samples have another scale causes a message to its client and a line in the "
    "log") {
  AdmissionUnderTest d;
  auto& client = d.open({.id = "mic", .format = "f32le"});
  const std::vector<float> undivided(4000, 3000.0f);  // a quarter of a second
  client.stream->frames(test::bytes_of(undivided), Clock::now());
  CHECK(client.told().back() == R"({"type":"warning","code":"values","message":)"
                                R"("most values were clamped; f32 audio lies between -1 and 1"})");
  CHECK_THAT(
      d.log(),
      Contains("level=warning event=\"stream sends wrong values\" pipeline=default stream=mic"));
}
