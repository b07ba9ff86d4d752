// SPDX-License-Identifier: Apache-2.0
// A peer with many streams: their opening, their messages, and the end of the peer.
#include "transport/sessions/zeromq/client_peer.h"

#include <catch2/catch.hpp>

#include "tests/support/allocations.h"
#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::Lines;
using test::PeerFixture;
namespace cp = client_protocol;

namespace {

struct TwoStreams : PeerFixture {
  TwoStreams() {
    opens(1);
    opens(2);
    (void)received();
  }
};

}  // namespace

TEST_CASE_METHOD(PeerFixture, "the admission receives the parameters of the client's request") {
  says(cp::Open{.stream = 3,
                .pipeline = "vad",
                .id = "mic",
                .format = "f32le",
                .rate = 12.5,
                .channels = 2,
                .dim = 80,
                .channel = "0",
                .chunk = "100ms",
                .options = R"({"a":1})"});
  REQUIRE(admission.requests.size() == 1);
  const StreamRequest& request = admission.requests[0];
  CHECK(request.pipeline == "vad");
  CHECK(request.id == "mic");
  CHECK(request.format == "f32le");
  CHECK(request.rate == 12.5);
  CHECK(request.channels == 2u);
  CHECK(request.dim == 80u);
  CHECK(request.channel == "0");
  CHECK(request.chunk == "100ms");
  CHECK(request.options == R"({"a":1})");
}

TEST_CASE_METHOD(PeerFixture, "a wrong parameter of an Open is an error that names it") {
  says(cp::Open{.version = 2, .stream = 1});
  says(cp::Open{.stream = 1, .pipeline = "a b"});
  says(cp::Open{.stream = 1, .id = ""});
  says(cp::Open{.stream = 1, .format = ""});
  says(cp::Open{.stream = 1, .rate = 0.0 / 0.0});
  says(cp::Open{.stream = 1, .options = "[]"});
  CHECK(received() == Lines{"error 1 schema version", "error 1 schema pipeline",
                            "error 1 schema id", "error 1 schema format", "error 1 schema rate",
                            "error 1 schema options"});
  CHECK(stats.refused[Refusal::parameter].value() == 6);
  CHECK(admission.streams.empty());
}

TEST_CASE_METHOD(PeerFixture, "a refusal has a code, and a time to retry if that can help") {
  const auto refusal = [&](RequestError error) {
    admission.error = std::move(error);
    opens(1);
    return received().front();
  };
  CHECK(refusal({.status = 404, .parameter = "pipeline"}) == "error 1 unknown_pipeline pipeline");
  CHECK(refusal({.status = 409, .parameter = "id"}) == "error 1 conflict id");
  CHECK(refusal({.status = 415, .parameter = "rate"}) == "error 1 format rate");
  CHECK(refusal({.status = 503, .retry_after = 1s, .reason = Refusal::no_room}) ==
        "error 1 no_room after 1000");
  CHECK(refusal({.status = 503, .retry_after = 2s, .reason = Refusal::draining}) ==
        "error 1 stopping after 2000");
  CHECK(stats.refused[Refusal::no_room].value() == 1);
  CHECK(peer.streams() == 0);
}

TEST_CASE_METHOD(TwoStreams,
                 "a stream number that is open cannot be opened again, and its stream continues") {
  opens(1);
  CHECK(received() == Lines{"rejected 1 conflict 0"});
  sends(1, 0, 3);
  CHECK(calls(0) == Lines{"frames 6 from 0"});
}

TEST_CASE_METHOD(PeerFixture, "a peer has at most 1024 streams") {
  for (std::uint64_t i = 0; i < ClientPeer::max_streams; ++i) opens(i);
  (void)received();
  opens(5000);
  CHECK_THAT(received().front(), Catch::StartsWith("error 5000 no_room after "));
  says(cp::End{.stream = 9});
  admission.streams[9].outbox->closed(0, 0, false);
  peer.flush(now);
  opens(5000);
  CHECK(received() == Lines{"closed 9 0 0", "ready 5000 s1024 default 0 2", "credit 5000 100"});
}

TEST_CASE_METHOD(TwoStreams, "a closed stream frees its number") {
  says(cp::End{.stream = 1});
  admission.streams[0].outbox->closed(10, 2, false);
  peer.flush(now);
  CHECK(calls(0) == Lines{"end", "lost clean"});
  opens(1);
  CHECK(received() == Lines{"closed 1 10 2", "ready 1 s2 default 0 2", "credit 1 100"});
  sends(1, 0, 1);
  CHECK(calls(2) == Lines{"frames 2 from 0"});
}

TEST_CASE_METHOD(TwoStreams, "a stream exists until the wire has accepted its last message") {
  wire.reads = false;
  admission.streams[0].outbox->error(ErrorCode::no_worker, "none came");
  peer.flush(now);
  sends(1, 0, 5);  // sent before the client received the error
  opens(1);
  CHECK(calls(0).empty());
  CHECK(peer.streams() == 2);
  wire.reads = true;
  peer.flush(now);
  CHECK(calls(0) == Lines{"lost clean"});
  CHECK(received() == Lines{"error 1 no_worker", "rejected 1 conflict 0"});
}

TEST_CASE_METHOD(TwoStreams, "messages to a stream that is not open are answered once") {
  sends(5, 0, 1);
  sends(6, 0, 1);
  sends(5, 1, 1);
  says(cp::End{.stream = 5});
  CHECK(received() == Lines{"error 5 unknown_stream", "error 6 unknown_stream"});
  CHECK(stats.rejected[MessageFault::unknown_stream].value() == 4);
}

TEST_CASE_METHOD(TwoStreams,
                 "messages in flight when a stream ends are dropped, and its number is free") {
  admission.streams[0].outbox->error(ErrorCode::no_worker, "none came");
  peer.flush(now);
  sends(1, 0, 5);
  sends(1, 5, 5);
  opens(1);
  CHECK(received() == Lines{"error 1 no_worker", "ready 1 s2 default 0 2", "credit 1 100"});
  CHECK(stats.rejected[MessageFault::unknown_stream].value() == 2);
}

TEST_CASE_METHOD(TwoStreams, "messages are sent in order, whenever the wire accepts them") {
  wire.reads = false;
  result(0, "a", 0);
  result(1, "b", 0);
  peer.flush(now);
  admission.streams[0].outbox->flushed(4, 0);
  wire.reads = true;
  peer.flush(now);
  result(0, "c", 1);
  admission.streams[1].outbox->goaway();
  peer.flush(now);
  CHECK(received() ==
        Lines{"result 1 0 a", "result 2 0 b", "flushed 1 4", "result 1 1 c", "goaway 2"});
  CHECK(admission.streams[0].written == 2);
  CHECK(stats.send_buffer.value() == 0);
}

TEST_CASE_METHOD(TwoStreams, "the wire is woken once for several messages") {
  const int before = wire.woken;
  result(0, "a", 0);
  result(0, "b", 1);
  CHECK(wire.woken == before + 1);
}

TEST_CASE_METHOD(TwoStreams,
                 "a failed answer is sent as worker_failed, without the worker's text") {
  admission.streams[0].outbox->result({}, {Answer::Kind::error, "secret"});
  peer.flush(now);
  CHECK(received() == Lines{"result 1 0 worker_failed"});
}

TEST_CASE_METHOD(TwoStreams, "a stream whose workers have failed ends with worker_failed") {
  admission.streams[0].outbox->error(ErrorCode::worker_failed, "two died over a row");
  peer.flush(now);
  CHECK(received() == Lines{"error 1 worker_failed"});
}

TEST_CASE_METHOD(TwoStreams, "an answer longer than the limit of a message is sent as an error") {
  limits.max_message_sent = 1000;
  result(0, std::string(1000, 'x'));
  result(0, std::string(700, 'y'), 1);
  peer.flush(now);
  CHECK(received() == Lines{"result 1 0 too_long", "result 1 1 " + std::string(700, 'y')});
}

TEST_CASE_METHOD(TwoStreams, "answers to invalid messages do not accumulate") {
  wire.reads = false;
  limits.unsent = limits.unsent_replies = 1000;
  for (int i = 0; i < 100; ++i) sends_bytes(1, 0, 1);
  CHECK(stats.send_buffer.value() < 1500);
  CHECK(calls(0).back() == "failed slow_reader");
  for (std::uint64_t i = 100; i < 200; ++i) sends(i, 0, 1);
  CHECK(stats.send_buffer.value() < 3000);
  CHECK(calls(1) == Lines{"failed slow_reader"});
  CHECK(peer.ending() == Closing::slow_reader);
}

TEST_CASE_METHOD(
    TwoStreams,
    "a client that takes no bytes for long loses its streams, and then its connection") {
  wire.reads = false;
  result(0, "a");
  after(0s);
  after(limits.write_stall);
  CHECK_FALSE(peer.ending());
  after(1ms);
  CHECK(calls(0) == Lines{"failed slow_reader"});
  CHECK(calls(1) == Lines{"failed slow_reader"});
  after(limits.close);
  CHECK(wire.cuts == 0);
  after(1ms);
  after(1ms);
  CHECK(wire.cuts == 1);
}

TEST_CASE_METHOD(TwoStreams, "a client that sometimes reads everything is not a slow reader") {
  for (int i = 0; i < 3; ++i) {
    wire.reads = false;
    result(0, "a");
    after(limits.write_stall);
    wire.reads = true;
    after(1ms);
  }
  CHECK_FALSE(peer.ending());
}

TEST_CASE_METHOD(TwoStreams, "a client that is always behind but reads much is not a slow reader") {
  wire.quiet = true;
  for (int i = 0; i < 4; ++i) {
    wire.room = 1;
    result(0, std::string(limits.unsent, 'x'));
    result(0, std::string(limits.unsent, 'x'));
    after(limits.write_stall);
    CHECK_FALSE(peer.ending());
  }
}

TEST_CASE_METHOD(TwoStreams, "a peer that is always behind and reads little is not a slow reader") {
  wire.reads = false;
  result(0, std::string(limits.unsent, 'x'));
  for (int i = 0; i < 4; ++i) {
    ++wire.taken;
    after(limits.write_stall);
    CHECK_FALSE(peer.ending());
  }
}

TEST_CASE_METHOD(TwoStreams, "an invalid message is answered") {
  offends();
  CHECK(received() == Lines{"error - schema"});
  CHECK(stats.rejected[MessageFault::verify].value() == 1);
  sends(1, 0, 1);
  CHECK(calls(0) == Lines{"frames 2 from 0"});
}

TEST_CASE_METHOD(
    TwoStreams,
    "the third invalid message in ten seconds ends a peer's streams, and later its connection") {
  offends();
  after(5s);
  offends();
  after(5s - 1ns);
  (void)received();
  offends();
  CHECK(received() == Lines{"error - schema", "error 2 schema", "error 1 schema"});
  CHECK(peer.ending() == Closing::protocol);
  sends(1, 0, 1);
  opens(9);
  offends();
  CHECK(received().empty());
  after(limits.close + 1ms);
  CHECK(wire.cuts == 1);
}

TEST_CASE_METHOD(TwoStreams, "three invalid messages in more than ten seconds end nothing") {
  for (int i = 0; i < 5; ++i) {
    offends();
    after(5s);
    sends_bytes(1, 0, 0);
    sends_bytes(2, 0, 0);
  }
  CHECK_FALSE(peer.ending());
  CHECK(peer.streams() == 2);
}

TEST_CASE_METHOD(TwoStreams, "a silent stream is ended, and no other") {
  after(20s);
  sends_bytes(2, 0, 0);
  after(10s);
  CHECK(calls(0).empty());
  after(1ms);
  CHECK(calls(0) == Lines{"failed idle", "lost clean"});
  CHECK(received() == Lines{"error 1 idle"});
  CHECK(peer.streams() == 1);
}

TEST_CASE_METHOD(TwoStreams, "a stream that may not send, or has ended, is not idle") {
  admission.streams[0].credit = 0;
  sends(1, 0, 100);
  says(cp::End{.stream = 2});
  after(29s);
  after(29s);
  CHECK(peer.streams() == 2);
  CHECK(calls(0) == Lines{"frames 200 from 0", "tick", "tick"});
  admission.streams[0].credit = 100;
  after(29s);
  CHECK(received() == Lines{"credit 1 100"});
  after(2s);
  CHECK(received() == Lines{"error 1 idle"});
}

TEST_CASE_METHOD(TwoStreams, "a peer that has disconnected loses all of its streams") {
  peer.lost(now);
  CHECK(calls(0) == Lines{"lost"});
  CHECK(calls(1) == Lines{"lost"});
  CHECK(peer.streams() == 0);
}

TEST_CASE_METHOD(TwoStreams, "in steady state messages need no allocation, in either direction") {
  wire.quiet = admission.streams[0].quiet = true;
  const std::array<std::byte, 20> bytes{};
  const Answer answer{Answer::Kind::text, "what was said"};
  std::uint64_t at = 0;
  const auto exchange = [&] {
    peer.received(cp::ToService(cp::Frames{.stream = 1, .at = at, .bytes = bytes}), now);
    at += 10;
    (void)admission.streams[0].outbox->result({}, answer);
    peer.flush(now);
  };
  for (int i = 0; i < 100; ++i) exchange();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 100; ++i) exchange();
  CHECK(test::allocations() == before);
  CHECK(stats.messages[MessageType::data].value() == 200);
}
