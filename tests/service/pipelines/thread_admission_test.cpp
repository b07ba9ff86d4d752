// SPDX-License-Identifier: Apache-2.0
// Accepted and refused streams, and the resources that they hold until they end.
#include "service/pipelines/thread_admission.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <set>

#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;
using Catch::Matchers::Contains;
using test::Link;

namespace {

// Status and parameter of an error.
using StatusAndParameter = std::pair<unsigned, std::string>;

StatusAndParameter refusal(AdmissionUnderTest& d, StreamRequest request) {
  const auto& error = d.open(std::move(request)).error;
  return error ? StatusAndParameter(error->status, error->parameter) : StatusAndParameter(101, "");
}

}  // namespace

TEST_CASE("a request that does not match the pipeline is refused, and its parameter is named") {
  AdmissionUnderTest d;
  CHECK(refusal(d, {.pipeline = "other"}) == StatusAndParameter(404, "pipeline"));
  CHECK(refusal(d, {.rate = 7999}) == StatusAndParameter(415, "rate"));
  CHECK(refusal(d, {.chunk = "x"}) == StatusAndParameter(400, "chunk"));
  CHECK(refusal(d, {.pipeline = "features", .dim = 4}) == StatusAndParameter(415, "dim"));
  CHECK(d.shared.connections.taken() == 0);
  CHECK(d.hub().stream_budget().taken() == 0);
  CHECK(d.live() == 0);
}

TEST_CASE("a client that names no pipeline gets the only one") {
  AdmissionUnderTest d(3, false, nullptr, true);
  const auto& client = d.open();
  CHECK(client.stream);
  CHECK(refusal(d, {.pipeline = "other"}) == StatusAndParameter(404, "pipeline"));
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
  CHECK(second.error->logged);
  d.shared.streams = 2;
  CHECK(d.open().stream);
}

TEST_CASE("a request may repeat the values of the pipeline") {
  AdmissionUnderTest d;
  CHECK(d.open({.format = "f32le", .rate = 16000, .channels = 1}).stream);
  CHECK(d.open({.pipeline = "features", .rate = 100, .dim = 3}).stream);
}

TEST_CASE("a client sends the audio that it has, and positions are those of the pipeline") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open({.format = "mulaw", .channel = "mean", .rate = 8000, .channels = 2});
  REQUIRE(client.stream);
  client.stream->frames(std::vector<std::byte>(2 * 2), Clock::now());  // two frames
  client.stream->end(Clock::now());
  d.run();
  d.answer(worker);  // the row, and END
  CHECK(client.received().back() == R"({"type":"closed","frames":4,"chunks":1})");
}

TEST_CASE("if explanations are not allowed, they are refused, and the parameter is named") {
  AdmissionUnderTest d;
  CHECK(refusal(d, {.explain = true}) == StatusAndParameter(400, "explain"));
  CHECK(d.shared.connections.taken() == 0);
}

TEST_CASE("only a stream that asks for explanations receives them") {
  AdmissionUnderTest d(3, true);
  Link& worker = d.attach();
  auto& plain = d.open();
  auto& asked = d.open({.explain = true});
  (void)plain.received();
  (void)asked.received();
  d.send_row(plain);
  d.send_row(asked);
  d.answer(worker, {{Answer::Kind::json, "1"}});
  d.answer(worker, {{Answer::Kind::json, "2"}});
  CHECK_THAT(plain.received().at(0), !Contains("explain"));
  CHECK_THAT(
      asked.received().at(0),
      Contains(R"("explain":{"slot":1,"batch":2,"rows":1,"trigger":"deadline","ms":{"chunk":)"));
}

TEST_CASE("the first message of a stream has its name and its position") {
  AdmissionUnderTest d;
  CHECK(d.open({.id = "mic"}).received() ==
        std::vector<std::string>{
            R"({"type":"ready","stream":"mic","pipeline":"default","frames":0})"});
  CHECK_THAT(d.open().received().front(), Catch::Contains(R"("stream":"s-)"));
}

TEST_CASE("a name belongs to its connection until that ends, even if the stream ends earlier") {
  AdmissionUnderTest d;
  auto& first = d.open({.id = "mic"});
  CHECK(refusal(d, {.id = "mic"}) == StatusAndParameter(409, "id"));
  CHECK(d.shared.connections.taken() == 1);
  CHECK(d.hub().stream_budget().taken() == 1);
  AdmissionUnderTest::disconnect(first);
  CHECK(d.open({.id = "mic"}).stream);
}

TEST_CASE("a name that is in use is refused with a time to retry") {
  AdmissionUnderTest d;
  REQUIRE(d.open({.id = "mic"}).stream);
  const auto& refused = d.open({.id = "mic"}).error;
  CHECK(refused->status == 409);
  CHECK(refused->retry_after.has_value());
}

TEST_CASE("clients that are refused at the same time receive different times to retry") {
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

TEST_CASE("a name chosen by the service differs from the names of clients") {
  AdmissionUnderTest d;
  REQUIRE(d.open({.id = "s-2"}).stream);
  CHECK_THAT(d.open().received().front(), Catch::Contains(R"("stream":"s-2x")"));
}

TEST_CASE("a stream without capacity is refused, changes nothing, and may be opened again") {
  AdmissionUnderTest d;
  auto& first = d.open();
  REQUIRE(d.open().stream);
  const auto& refused = d.open({.id = "late"}).error;
  CHECK(refused->status == 503);
  CHECK(refused->reason == Refusal::no_room);
  CHECK(refused->retry_after.has_value());
  CHECK(d.shared.connections.taken() == 2);
  // No worker had a row of it: its slot is free when the lanes have received the abort.
  AdmissionUnderTest::disconnect(first);
  d.run();
  CHECK(d.open({.id = "late"}).stream);
}

TEST_CASE("the limit on connections counts the streams of all pipelines") {
  AdmissionUnderTest d(2);
  REQUIRE(d.open().stream);
  auto& second = d.open({.pipeline = "features"});
  CHECK(d.open().error->reason == Refusal::limit_global);
  CHECK(d.hub().stream_budget().taken() == 1);
  AdmissionUnderTest::disconnect(second);
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

TEST_CASE("results reach the client in order, and count as written when they are written") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open({.id = "mic"});
  (void)client.received();
  d.send_row(client);
  d.answer(worker, {{Answer::Kind::text, "a"}});
  CHECK(d.stats().results.value() == 1);
  CHECK_THAT(client.received().front(), Catch::Contains(R"("seq":0)") && Catch::Contains(R"("a")"));
  CHECK(d.stats().results.value() == 0);
  CHECK(d.stats().latency.sum() > 0);
}

TEST_CASE("a stream outlives its connection until its rows are done") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  AdmissionUnderTest::disconnect(client);
  d.run();
  CHECK(d.live() == 1);
  CHECK(d.shared.connections.taken() == 1);
  d.answer(worker);
  CHECK(d.live() == 1);
  d.answer(worker);  // ABORT
  CHECK(d.live() == 0);
  CHECK(d.shared.connections.taken() == 0);
  CHECK(d.hub().stream_budget().taken() == 0);
  CHECK(d.stats().open.value() == 0);
  CHECK(d.stats().buffer.value() == 0);
}

TEST_CASE("a stream whose session is destroyed ends as lost") {
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
  CHECK(d.hub().stream_budget().taken() == 0);
  CHECK(d.stats().closed[StreamClosing::client_gone].value() == 1);
}

TEST_CASE("a stream whose connection is too old ends as in a drain") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  d.send_row(client);
  (void)client.received();
  client.stream->drain(Clock::now());
  d.admission->table().drain(Clock::now());  // the service stops too
  const auto received = client.received();
  REQUIRE(received.size() == 1);
  CHECK_THAT(received[0], Catch::StartsWith(R"({"type":"goaway","retry_after_ms":)"));
  d.send_row(client);  // frames that were on their way
  d.answer(worker);
  d.answer(worker);  // END
  CHECK(client.received().back() == R"({"type":"closed","frames":4,"chunks":1})");
  CHECK(client.outbox.queue().closing()->code == 1012);
  CHECK(d.stats().closed[StreamClosing::drain].value() == 1);
}

TEST_CASE("a stream whose rows are done is kept until its connection has ended") {
  AdmissionUnderTest d;
  Link& worker = d.attach();
  auto& client = d.open();
  client.stream->end(Clock::now());
  d.run();
  d.answer(worker);
  CHECK(d.hub().stream_budget().taken() == 0);
  CHECK(client.received().back() == R"({"type":"closed","frames":0,"chunks":0})");
  CHECK(d.live() == 1);
  AdmissionUnderTest::disconnect(client);
  CHECK(d.live() == 0);
}

TEST_CASE("a refused stream is logged, and as a warning if capacity is the reason") {
  AdmissionUnderTest d;
  d.open({.id = "mic", .rate = 7999});
  CHECK(d.logged.stats.logged[LogLevel::warning].value() == 0);
  for (int i = 0; i < 3; ++i) d.open();
  CHECK(d.logged.stats.logged[LogLevel::warning].value() == 1);
  const std::string text = d.log();
  CHECK_THAT(text, Contains("level=info event=\"stream refused\" pipeline=default stream=mic "
                            "parameter=rate why=\"must be a whole number from 8000 to 192000\"\n"));
  CHECK_THAT(text, Contains("level=warning event=\"stream refused\" pipeline=default "
                            "why=\"the pipeline has no free slot for another stream\"\n"));
}

TEST_CASE("a stream that ends with an error is logged with its name and the reason") {
  AdmissionUnderTest d;
  auto& client = d.open({.id = "mic"});
  client.stream->fail(ErrorCode::schema, "not a JSON object", Clock::now());
  AdmissionUnderTest::disconnect(client);
  const std::string text = d.log();
  CHECK_THAT(text, Contains("level=info event=\"stream ended\" pipeline=default stream=mic "
                            "code=schema why=\"not a JSON object\"\n"));
  CHECK_THAT(text, !Contains("stream aborted"));
}

TEST_CASE("a stream that no worker was available for is logged as a warning") {
  AdmissionUnderTest d;
  d.open({.id = "mic"});
  d.run();
  d.hub().drain(Clock::now());
  d.run();
  CHECK_THAT(d.log(), Contains("level=warning event=\"stream ended\" pipeline=default "
                               "stream=mic code=no_worker"));
}

TEST_CASE("a stream that fails because workers were lost is logged as a warning") {
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

TEST_CASE("a stream whose client disconnects early is logged, and one with all results is not") {
  AdmissionUnderTest d;
  AdmissionUnderTest::disconnect(d.open({.id = "mic"}));
  d.run();
  Link& worker = d.attach();
  auto& whole = d.open({.id = "whole"});
  whole.stream->end(Clock::now());
  d.run();
  d.answer(worker);
  AdmissionUnderTest::disconnect(whole);
  const std::string text = d.log();
  CHECK_THAT(text, Contains("event=\"stream aborted\" pipeline=default stream=mic"));
  CHECK_THAT(text, !Contains("whole"));
}

TEST_CASE("samples of another scale cause a warning to the client and a line in the log") {
  AdmissionUnderTest d;
  auto& client = d.open({.id = "mic", .format = "f32le"});
  const std::vector<float> undivided(4000, 3000.0f);  // a quarter of a second
  client.stream->frames(test::bytes_of(undivided), Clock::now());
  CHECK(client.received().back() ==
        R"({"type":"warning","code":"values","message":)"
        R"("most values were clamped; f32 audio must be between -1 and 1"})");
  CHECK_THAT(
      d.log(),
      Contains("level=warning event=\"stream values out of range\" pipeline=default stream=mic"));
}
