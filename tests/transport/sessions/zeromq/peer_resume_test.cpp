// SPDX-License-Identifier: Apache-2.0
// Streams that outlive the connection of their peer: fields of messages, and the end of a stream.
#include <catch2/catch.hpp>

#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::Lines;
using test::PeerFixture;
namespace cp = client_protocol;

namespace {

using Numbers = std::vector<std::uint64_t>;

// Stream 1 resumes, and stream 2 does not.
struct Resuming : PeerFixture {
  Resuming() {
    says(cp::Open{.stream = 1, .resume = true});
    opens(2);
    (void)received();
  }
  ClientOutput& output() { return *admission.streams[0].outbox; }
  // Sends the last message of the stream, with this number.
  void closes(std::uint64_t n, bool drained = false) {
    output().number({.n = n});
    output().closed(10, 2, drained);
    peer.flush(now);
  }
};

}  // namespace

TEST_CASE_METHOD(PeerFixture, "the admission receives what a client has of a stream") {
  says(cp::Open{.stream = 3,
                .id = "mic",
                .resume = true,
                .resume_token = "a.b.c",
                .n = 58,
                .place = ResumePoint{40, 64000, 3, 63990, 10},
                .have = 42,
                .flushed = 7,
                .set = R"({"a":1})"});
  REQUIRE(admission.requests.size() == 1);
  CHECK(admission.requests[0].resume);
  const Resumption& from = admission.requests[0].resumption.value();
  CHECK(from.token == "a.b.c");
  CHECK(from.n == 58);
  CHECK(from.point == ResumePoint{40, 64000, 3, 63990, 10});
  CHECK(from.results == 42);
  CHECK(from.flushed == 7);
  CHECK(from.set == R"({"a":1})");
}

TEST_CASE_METHOD(PeerFixture, "absent numbers of a client that continues a stream are 0") {
  says(cp::Open{.stream = 3, .id = "mic", .resume = true, .resume_token = "a"});
  REQUIRE(admission.requests.size() == 1);
  CHECK(admission.requests[0].resumption == Resumption{.token = "a"});
}

TEST_CASE_METHOD(PeerFixture,
                 "an Open with a part of what a resumption needs names the parameter") {
  const auto over = cp::max_number + 1;
  says(cp::Open{.stream = 1, .id = "mic", .resume = true, .n = 5});
  says(cp::Open{.stream = 1, .id = "mic", .resume_token = "a"});
  says(cp::Open{.stream = 1, .resume = true, .resume_token = "a"});
  says(cp::Open{.stream = 1, .id = "m", .resume = true, .resume_token = "a", .n = over});
  says(cp::Open{.stream = 1,
                .id = "m",
                .resume = true,
                .resume_token = "a",
                .place = ResumePoint{.frames = over}});
  says(cp::Open{.stream = 1, .id = "m", .resume = true, .resume_token = "a", .set = "[]"});
  CHECK(received() == Lines{"error 1 schema n", "error 1 schema resume", "error 1 schema id",
                            "error 1 schema n", "error 1 schema from", "error 1 schema set"});
  CHECK(admission.streams.empty());
}

TEST_CASE_METHOD(PeerFixture,
                 "Ready has the token, and what has arrived of a stream that was kept") {
  says(cp::Open{.stream = 1, .resume = true});
  admission.arrived = {500, 3};
  says(cp::Open{.stream = 2, .id = "s0", .resume = true, .resume_token = "a"});
  CHECK(received() == Lines{"ready 1 s0 default 0 2 keep 1000 next.token", "credit 1 100",
                            "ready 2 s1 default 500 2 keep 1000 next.token resumed 3",
                            "credit 2 100"});
  sends(2, 495, 10);
  sends(2, 500, 2);
  CHECK(calls(1) == Lines{"frames 10 from 244"});  // those from 500 on, and no frame twice
}

TEST_CASE_METHOD(PeerFixture, "a stream of another io thread cannot be continued over ZeroMQ") {
  admission.thread = 3;
  says(cp::Open{.stream = 1, .id = "mic", .resume = true, .resume_token = "a"});
  CHECK(received() == Lines{"error 1 conflict resume"});
  CHECK(wire.text == "the stream was opened over another transport");
  CHECK(stats.refused[Refusal::resume].value() == 1);
  CHECK(admission.streams.empty());
  opens(1);
  CHECK(received() == Lines{"ready 1 s0 default 0 2", "credit 1 100"});
}

TEST_CASE_METHOD(Resuming, "each message in the order of the stream has its number, and no other") {
  std::uint64_t n = 5;
  const auto next = [&] { output().number({.n = n++, .point = ResumePoint{1, 2, 3, 4, 5}}); };
  next();
  result(0, "a");
  next();
  output().message({}, {Answer::Kind::text, "b"});
  next();
  output().flushed(1, 3);
  output().acknowledged({1, 2, 3, 4, 5});
  output().goaway();
  next();
  output().rejected(ErrorCode::values, "no", 1);
  output().rejected(ErrorCode::values, "of the transport", 1);
  next();
  output().error(ErrorCode::no_worker, "none came");
  peer.flush(now);
  CHECK(wire.numbers == Numbers{5, 6, 7, 8, 9});
  CHECK(received() == Lines{"result 1 0 a", "message 1 0 0 b", "flushed 1 1", "ack 1 1 2 3 4 5",
                            "goaway 1", "rejected 1 values 1", "rejected 1 values 1",
                            "error 1 no_worker"});
}

TEST_CASE_METHOD(Resuming, "acknowledgements reach the stream, after the client's end too") {
  says(cp::Received{.stream = 1, .n = 4});
  says(cp::End{.stream = 1});
  says(cp::Received{.stream = 1, .n = 9});
  CHECK(calls(0) == Lines{"acknowledge 4", "end", "acknowledge 9"});
  CHECK(received().empty());
}

TEST_CASE_METHOD(Resuming, "a stream is over when the client has acknowledged its last message") {
  closes(7);
  CHECK(peer.streams() == 2);
  says(cp::Received{.stream = 1, .n = 7});  // all before the last one
  CHECK(peer.streams() == 2);
  says(cp::Received{.stream = 1, .n = 8});
  CHECK(peer.streams() == 1);
  CHECK(calls(0) == Lines{"acknowledge 7", "acknowledge 8", "lost clean"});
  says(cp::Received{.stream = 1, .n = 8});
  CHECK(received() == Lines{"closed 1 10 2"});
}

TEST_CASE_METHOD(Resuming, "the number of a stream is free when its last message was sent") {
  closes(7);
  says(cp::Open{.stream = 1, .resume = true});
  CHECK(calls(0) == Lines{"lost clean"});
  CHECK(received() ==
        Lines{"closed 1 10 2", "ready 1 s2 default 0 2 keep 1000 next.token", "credit 1 100"});
}

TEST_CASE_METHOD(Resuming, "a stream whose end the client does not acknowledge waits for it") {
  closes(7);
  after(limits.close);
  after(limits.close);
  CHECK(peer.streams() == 2);
  after(1ms);
  CHECK(peer.streams() == 1);
  CHECK(calls(0) == Lines{"lost"});
}

TEST_CASE_METHOD(Resuming, "a stream that the service ends waits for no acknowledgement") {
  closes(7, true);
  CHECK(peer.streams() == 1);
  CHECK(calls(0) == Lines{"lost clean"});
}

TEST_CASE_METHOD(Resuming, "a lost connection ends a stream only if the client has its end") {
  closes(7);
  output().closed(0, 0, false);
  peer.lost(now);
  CHECK(calls(0) == Lines{"lost"});
  CHECK(calls(1) == Lines{"lost"});
}

TEST_CASE_METHOD(Resuming, "an error without a number needs no acknowledgement") {
  output().error(ErrorCode::conflict, "continued elsewhere");
  peer.flush(now);
  CHECK(received() == Lines{"error 1 conflict"});
  CHECK(peer.streams() == 1);
}

TEST_CASE_METHOD(PeerFixture,
                 "a stream that received its end before is not idle and gets no credit") {
  admission.ended = true;
  says(cp::Open{.stream = 1, .id = "mic", .resume = true, .resume_token = "a"});
  CHECK(received() == Lines{"ready 1 s0 default 0 2 keep 1000 next.token resumed 0"});
  after(limits.idle + 1ms);
  CHECK(received().empty());
  CHECK(peer.streams() == 1);
}

TEST_CASE_METHOD(PeerFixture, "a client that resumes need not read all messages before it sends") {
  limits.unsent = 1000;
  admission.kept = 100;
  wire.room = 2;
  says(cp::Open{.stream = 1, .id = "mic", .resume = true, .resume_token = "a"});
  CHECK(received() ==
        Lines{"ready 1 s0 default 0 2 keep 1000 next.token resumed 0", "rejected 1 values 1"});
  says(cp::Flush{.stream = 1});
  CHECK(calls(0) == Lines{"flush"});
  wire.room = 50;
  peer.flush(now);
  says(cp::Flush{.stream = 1});
  CHECK(calls(0) == Lines{"flush"});
}

TEST_CASE_METHOD(Resuming, "the streams of a client that reads nothing wait if they resume") {
  wire.reads = false;
  result(0, "a");
  after(0s);
  after(limits.write_stall + 1ms);
  CHECK(calls(0).empty());
  CHECK(calls(1) == Lines{"failed slow_reader"});
  after(limits.close + 1ms);
  CHECK(wire.cuts == 1);
  peer.lost(now);
  CHECK(calls(0) == Lines{"lost"});
}
