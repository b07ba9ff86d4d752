// SPDX-License-Identifier: Apache-2.0
// Where a peer's frames go by their positions, and how many it may send.
#include <catch2/catch.hpp>

#include "tests/transport/sessions/peer_fixture.h"

using namespace millrace;
using test::Lines;
using test::PeerFixture;
namespace cp = client_protocol;

namespace {

// With one stream open, number 7, that was told how much it may send: 100 frames.
struct OpenStream : PeerFixture {
  OpenStream() {
    opens(7);
    (void)told();
  }
  const Counter& rejected(MessageFault fault) { return stats.rejected[fault]; }
};

constexpr std::uint64_t last = std::uint64_t{1} << 53;

}  // namespace

TEST_CASE_METHOD(PeerFixture,
                 "who opens a stream is told its name, its frames and how many it may send") {
  opens(7);
  CHECK(told() == Lines{"ready 7 s0 default 0 2", "credit 7 100"});
}

TEST_CASE_METHOD(OpenStream, "frames that follow each other go to the stream") {
  sends(7, 0, 10);
  sends(7, 10, 5);
  CHECK(calls(0) == Lines{"frames 20 from 0", "frames 10 from 10"});
  CHECK(stats.messages[MessageType::data].value() == 2);
}

TEST_CASE_METHOD(OpenStream, "frames that were there are dropped and counted") {
  sends(7, 0, 10);
  sends(7, 0, 10);
  sends(7, 4, 10);
  CHECK(calls(0) == Lines{"frames 20 from 0", "frames 8 from 10"});
  CHECK(rejected(MessageFault::position).value() == 2);
  CHECK(told().empty());
}

TEST_CASE_METHOD(OpenStream, "frames that are missing are a gap") {
  sends(7, 0, 10);
  sends(7, 15, 5);
  sends(7, 10, 5);
  CHECK(calls(0) == Lines{"frames 20 from 0", "gap 5", "frames 10 from 15"});
  CHECK(rejected(MessageFault::position).value() == 1);
}

TEST_CASE_METHOD(OpenStream, "a gap moves the position, and costs nothing") {
  says(cp::Gap{.stream = 7, .frames = 1000});
  sends(7, 1000, 5);
  CHECK(calls(0).front() == "gap 1000");
  CHECK(told().empty());
}

TEST_CASE_METHOD(OpenStream, "positions end at 2^53") {
  sends(7, last - 4, 4);
  CHECK(calls(0) == Lines{"gap " + std::to_string(last - 4), "frames 8 from 252"});
  sends(7, last, 1);
  sends(7, ~std::uint64_t{0}, 1);
  CHECK(calls(0) == Lines{"reject values 0", "reject values 0"});
  CHECK(rejected(MessageFault::position).value() == 2);
  CHECK(told() == Lines{"rejected 7 values 0", "rejected 7 values 0"});
}

TEST_CASE_METHOD(OpenStream,
                 "a message of part of a frame is refused, its whole frames are a gap") {
  sends_bytes(7, 0, 9);
  sends(7, 4, 1);
  CHECK(calls(0) == Lines{"reject values 4", "frames 2 from 4"});
  CHECK(told() == Lines{"rejected 7 values 4"});
  CHECK(rejected(MessageFault::format).value() == 1);
}

TEST_CASE_METHOD(OpenStream, "a message that is too long is refused, its frames are a gap") {
  limits.message = 20;
  sends(7, 3, 11);
  CHECK(calls(0) == Lines{"gap 3", "reject too_long 11"});
  CHECK(rejected(MessageFault::size).value() == 1);
}

TEST_CASE_METHOD(OpenStream, "an empty message is a sign of life, wherever it says it is") {
  sends_bytes(7, 50, 0);
  sends(7, 0, 1);
  CHECK(calls(0) == Lines{"frames 2 from 0"});
  CHECK(stats.messages[MessageType::control].value() == 1);
}

TEST_CASE_METHOD(OpenStream, "credit is given again when half of what there is room for was used") {
  admission.streams[0].room = 80;
  sends(7, 0, 59);
  CHECK(told().empty());
  sends(7, 59, 1);
  CHECK(told() == Lines{"credit 7 40"});
}

TEST_CASE_METHOD(OpenStream,
                 "no credit is given while there is no room, and as much as there is afterwards") {
  admission.streams[0].room = 0;
  sends(7, 0, 100);
  CHECK(told().empty());
  admission.streams[0].room = 70;
  admission.streams[0].outbox->has_room();
  peer.flush(now);
  CHECK(told() == Lines{"credit 7 70"});
}

TEST_CASE_METHOD(OpenStream, "what is sent beyond the credit is refused, and a gap") {
  admission.streams[0].room = 0;
  sends(7, 0, 60);
  sends(7, 60, 41);
  CHECK(calls(0) == Lines{"frames 120 from 0", "reject too_fast 41"});
  CHECK(told() == Lines{"rejected 7 too_fast 41"});
  CHECK(rejected(MessageFault::rate_limit).value() == 1);
  // It cost credit all the same: both ends count alike.
  admission.streams[0].room = 100;
  after(std::chrono::milliseconds(250));
  CHECK(told() == Lines{"credit 7 101"});
}

TEST_CASE_METHOD(OpenStream,
                 "frames that were there, or were refused, cost credit that comes back") {
  sends(7, 0, 30);
  sends(7, 0, 30);
  sends_bytes(7, 30, 1);
  CHECK(told() == Lines{"credit 7 60", "rejected 7 values 0"});
}

TEST_CASE_METHOD(OpenStream, "who does not read gets no credit") {
  wire.reads = false;
  result(0, std::string(limits.unsent, 'x'));
  sends(7, 0, 100);
  result(0, "b", 1);
  wire.reads = true;
  peer.flush(now);
  CHECK(told()[1] == "result 7 1 b");
  sends_bytes(7, 100, 0);
  CHECK(peer.streams() == 1);
}

TEST_CASE_METHOD(OpenStream, "of an answer that is too long, or failed, an error is sent") {
  limits.told = 500;
  result(0, "a");
  for (const Answer::Kind kind : {Answer::Kind::text, Answer::Kind::error})
    admission.streams[0].outbox->result({.seq = 1}, {kind, std::string(2000, 'x')});
  peer.flush(now);
  CHECK(told() == Lines{"result 7 0 a", "result 7 1 too_long", "result 7 1 worker_failed"});
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

TEST_CASE_METHOD(OpenStream, "after the end another one is harmless, and all else refused") {
  says(cp::End{.stream = 7});
  says(cp::End{.stream = 7});
  sends(7, 0, 1);
  says(cp::Flush{.stream = 7});
  CHECK(calls(0) == Lines{"end"});
  CHECK(told() == Lines{"rejected 7 unknown_stream 0", "rejected 7 unknown_stream 0"});
}

TEST_CASE_METHOD(OpenStream, "answers to what follows an end are not piled up") {
  wire.reads = false;
  limits.unsent = 1000;
  says(cp::End{.stream = 7});
  for (int i = 0; i < 100; ++i) sends(7, 0, 1);
  CHECK(stats.send_buffer.value() < 1500);
  CHECK(calls(0) == Lines{"end", "failed slow_reader"});
}

TEST_CASE_METHOD(OpenStream, "who sends commands without end has its stream ended") {
  admission.streams[0].overrun = true;
  says(cp::Flush{.stream = 7});
  CHECK(told() == Lines{"error 7 too_fast"});
  CHECK(calls(0) == Lines{"failed too_fast", "lost clean"});
}
