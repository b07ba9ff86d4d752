// SPDX-License-Identifier: Apache-2.0
// The positions of a peer's frames, and its credit.
#include <catch2/catch.hpp>

#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
using test::Lines;
using test::PeerFixture;
namespace cp = client_protocol;

namespace {

// With one open stream, number 7, which has received a credit of 100 frames.
struct OpenStream : PeerFixture {
  OpenStream() {
    opens(7);
    (void)received();
  }
  const Counter& rejected(MessageFault fault) { return stats.rejected[fault]; }
};

constexpr std::uint64_t last = std::uint64_t{1} << 53;

}  // namespace

TEST_CASE_METHOD(PeerFixture, "an opened stream receives its name, its frames and its credit") {
  opens(7);
  CHECK(received() == Lines{"ready 7 s0 default 0 2", "credit 7 100"});
}

TEST_CASE_METHOD(OpenStream, "frames that follow each other go to the stream") {
  sends(7, 0, 10);
  sends(7, 10, 5);
  CHECK(calls(0) == Lines{"frames 20 from 0", "frames 10 from 10"});
  CHECK(stats.messages[MessageType::data].value() == 2);
}

TEST_CASE_METHOD(OpenStream, "frames before the position are dropped and counted") {
  sends(7, 0, 10);
  sends(7, 0, 10);
  sends(7, 4, 10);
  CHECK(calls(0) == Lines{"frames 20 from 0", "frames 8 from 10"});
  CHECK(rejected(MessageFault::position).value() == 2);
  CHECK(received().empty());
}

TEST_CASE_METHOD(OpenStream, "missing frames become a gap") {
  sends(7, 0, 10);
  sends(7, 15, 5);
  sends(7, 10, 5);
  CHECK(calls(0) == Lines{"frames 20 from 0", "gap 5", "frames 10 from 15"});
  CHECK(rejected(MessageFault::position).value() == 1);
}

TEST_CASE_METHOD(OpenStream, "a gap moves the position, and uses no credit") {
  says(cp::Gap{.stream = 7, .frames = 1000});
  sends(7, 1000, 5);
  CHECK(calls(0).front() == "gap 1000");
  CHECK(received().empty());
}

TEST_CASE_METHOD(OpenStream, "a message to the worker keeps its place, and uses no credit") {
  sends(7, 0, 10);
  says(cp::Post{.stream = 7, .data = "[1]"});
  says(cp::SetOptions{.stream = 7, .options = "{}"});
  says(cp::Flush{.stream = 7});
  CHECK(calls(0) == Lines{"frames 20 from 0", "post [1]", "set {}", "flush"});
  CHECK(received().empty());
}

TEST_CASE_METHOD(OpenStream,
                 "a message to the worker that is not JSON is rejected, and the stream continues") {
  says(cp::Post{.stream = 7, .data = "[1"});
  says(cp::SetOptions{.stream = 7, .options = "[1]"});
  says(cp::Flush{.stream = 7});
  CHECK(calls(0) == Lines{"reject command", "reject command", "flush"});
  CHECK(received() == Lines{"rejected 7 schema 0", "rejected 7 schema 0"});
  CHECK(rejected(MessageFault::schema).value() == 2);
}

TEST_CASE_METHOD(OpenStream, "positions end at 2^53") {
  sends(7, last - 4, 4);
  CHECK(calls(0) == Lines{"gap " + std::to_string(last - 4), "frames 8 from 252"});
  sends(7, last, 1);
  sends(7, ~std::uint64_t{0}, 1);
  CHECK(calls(0) == Lines{"reject values 0", "reject values 0"});
  CHECK(rejected(MessageFault::position).value() == 2);
  CHECK(received() == Lines{"rejected 7 values 0", "rejected 7 values 0"});
}

TEST_CASE_METHOD(OpenStream,
                 "a message with part of a frame is refused, and its whole frames become a gap") {
  sends_bytes(7, 0, 9);
  sends(7, 4, 1);
  CHECK(calls(0) == Lines{"reject values 4", "frames 2 from 4"});
  CHECK(received() == Lines{"rejected 7 values 4"});
  CHECK(rejected(MessageFault::format).value() == 1);
}

TEST_CASE_METHOD(OpenStream, "a message that is too long is refused, and its frames become a gap") {
  limits.message = 20;
  sends(7, 3, 11);
  CHECK(calls(0) == Lines{"gap 3", "reject too_long 11"});
  CHECK(rejected(MessageFault::size).value() == 1);
}

TEST_CASE_METHOD(OpenStream, "an empty message keeps a stream alive, at any position") {
  sends_bytes(7, 50, 0);
  sends(7, 0, 1);
  CHECK(calls(0) == Lines{"frames 2 from 0"});
  CHECK(stats.messages[MessageType::control].value() == 1);
}

TEST_CASE_METHOD(OpenStream, "credit is granted again when half of the capacity was used") {
  admission.streams[0].credit = 80;
  sends(7, 0, 59);
  CHECK(received().empty());
  sends(7, 59, 1);
  CHECK(received() == Lines{"credit 7 40"});
}

TEST_CASE_METHOD(OpenStream,
                 "no credit is granted while none is available, and all of it afterwards") {
  admission.streams[0].credit = 0;
  sends(7, 0, 100);
  CHECK(received().empty());
  admission.streams[0].credit = 70;
  admission.streams[0].outbox->credit_available();
  peer.flush(now);
  CHECK(received() == Lines{"credit 7 70"});
}

TEST_CASE_METHOD(OpenStream, "frames beyond the credit are rejected, and become a gap") {
  admission.streams[0].credit = 0;
  sends(7, 0, 60);
  sends(7, 60, 41);
  CHECK(calls(0) == Lines{"frames 120 from 0", "reject too_fast 41"});
  CHECK(received() == Lines{"rejected 7 too_fast 41"});
  CHECK(rejected(MessageFault::rate_limit).value() == 1);
  // Rejected frames use credit too: both ends must count the same.
  admission.streams[0].credit = 100;
  after(std::chrono::milliseconds(250));
  CHECK(received() == Lines{"credit 7 101"});
}

TEST_CASE_METHOD(
    OpenStream,
    "frames before the position and refused frames use credit, which is granted again") {
  sends(7, 0, 30);
  sends(7, 0, 30);
  sends_bytes(7, 30, 1);
  CHECK(received() == Lines{"credit 7 60", "rejected 7 values 0"});
}

TEST_CASE_METHOD(OpenStream, "a client that does not read receives no credit") {
  wire.reads = false;
  result(0, std::string(limits.unsent, 'x'));
  sends(7, 0, 100);
  result(0, "b", 1);
  wire.reads = true;
  peer.flush(now);
  CHECK(received()[1] == "result 7 1 b");
  sends_bytes(7, 100, 0);
  CHECK(peer.streams() == 1);
}

TEST_CASE_METHOD(OpenStream, "an answer that is too long or has failed is sent as an error") {
  limits.max_message_sent = 500;
  result(0, "a");
  for (const Answer::Kind kind : {Answer::Kind::text, Answer::Kind::error})
    admission.streams[0].outbox->result({.seq = 1}, {kind, std::string(2000, 'x')});
  peer.flush(now);
  CHECK(received() == Lines{"result 7 0 a", "result 7 1 too_long", "result 7 1 worker_failed"});
}

TEST_CASE_METHOD(PeerFixture, "each message of an Opus client is a frame, whatever its length") {
  says(cp::Open{.stream = 7, .format = "opus"});
  CHECK(received() == Lines{"ready 7 s0 default 0 0", "credit 7 100"});
  sends_bytes(7, 0, 61);
  sends_bytes(7, 1, 1);
  sends_bytes(7, 9, 0);  // a keepalive
  sends_bytes(7, 1, 8);  // a second time
  sends_bytes(7, 4, 3);  // two packets are missing
  CHECK(calls(0) == Lines{"frames 61 from 0", "frames 1 from 1", "gap 2", "frames 3 from 4"});
  for (std::uint64_t at = 5; at < 51; ++at) sends_bytes(7, at, 9);
  CHECK(received() == Lines{"credit 7 50"});
}

TEST_CASE_METHOD(PeerFixture,
                 "a packet that is refused uses a credit of one, and is a gap of one") {
  says(cp::Open{.stream = 7, .format = "opus"});
  (void)received();
  limits.message = 20;
  sends_bytes(7, 0, 21);
  sends_bytes(7, 1, 20);
  CHECK(calls(0) == Lines{"reject too_long 1", "frames 20 from 1"});
}

TEST_CASE_METHOD(OpenStream, "commands reach their stream") {
  says(cp::Flush{.stream = 7, .mark = 5});
  says(cp::Flush{.stream = 7});
  says(cp::Reset{.stream = 7});
  says(cp::End{.stream = 7});
  CHECK(calls(0) == Lines{"flush 5", "flush", "reset", "end"});
  CHECK(stats.messages[MessageType::control].value() == 3);
  CHECK(stats.messages[MessageType::close].value() == 1);
}

TEST_CASE_METHOD(OpenStream,
                 "after the end, another end is ignored, and all other messages are refused") {
  says(cp::End{.stream = 7});
  says(cp::End{.stream = 7});
  sends(7, 0, 1);
  says(cp::Flush{.stream = 7});
  CHECK(calls(0) == Lines{"end"});
  CHECK(received() == Lines{"rejected 7 unknown_stream 0", "rejected 7 unknown_stream 0"});
}

TEST_CASE_METHOD(OpenStream, "answers to messages after an end do not accumulate") {
  wire.reads = false;
  limits.unsent = 1000;
  says(cp::End{.stream = 7});
  for (int i = 0; i < 100; ++i) sends(7, 0, 1);
  CHECK(stats.send_buffer.value() < 1500);
  CHECK(calls(0) == Lines{"end", "failed slow_reader"});
}

TEST_CASE_METHOD(OpenStream, "a rejection has the limit and what was sent") {
  sends(7, 0, 101);
  CHECK(wire.text == "101 frames with a credit of 100: wait for Credit before you send more");
  limits.message = 10;
  sends(7, 101, 6);
  CHECK(wire.text == "a message has at most 10 bytes of frames, not 12");
}

TEST_CASE_METHOD(OpenStream, "a stream with endless commands is ended") {
  admission.streams[0].overrun = true;
  says(cp::Flush{.stream = 7});
  CHECK(wire.text ==
        "512 commands wait to be processed, or too many rejections to be acknowledged: send more "
        "slowly");
  CHECK(received() == Lines{"error 7 too_fast"});
  CHECK(calls(0) == Lines{"failed too_fast", "lost clean"});
}

TEST_CASE_METHOD(OpenStream, "while pieces of a long message wait, no credit is granted") {
  admission.streams[0].piece = 40;
  sends(7, 0, 60);
  CHECK(calls(0) == Lines{"frames 40 from 0"});
  CHECK(peer.is_unfinished());
  CHECK(received().empty());
  peer.proceed();
  CHECK(calls(0) == Lines{"frames 40 from 20"});
  peer.proceed();
  CHECK(calls(0) == Lines{"frames 40 from 40"});
  CHECK_FALSE(peer.is_unfinished());
  peer.flush(now);
  CHECK(received() == Lines{"credit 7 60"});
}

TEST_CASE_METHOD(PeerFixture, "the pieces of a message are dropped if its stream has failed") {
  opens(7);
  admission.streams[0].piece = 40;
  sends(7, 0, 60);
  admission.streams[0].outbox->error(ErrorCode::no_worker, "no worker");
  SECTION("before it is removed") {}
  SECTION("after it was removed") { peer.flush(now); }
  (void)calls(0);
  peer.proceed();
  CHECK_FALSE(peer.is_unfinished());
  CHECK(calls(0).empty());
}
