// SPDX-License-Identifier: Apache-2.0
// A peer without a stream: how long it may be one, and when it asks again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <new>
#include <set>

#include "tests/transport/sessions/peer_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::Lines;
using test::PeerFixture;

TEST_CASE_METHOD(PeerFixture,
                 "a peer that opens no stream is told so, then cut, whatever else it sends") {
  admission.error = RequestError{.status = 503, .reason = Refusal::no_room};
  opens(1);
  (void)told();
  after(29s);
  sends(1, 0, 1);
  (void)told();
  after(1s);
  CHECK(told().empty());
  after(1ms);
  CHECK(told() == Lines{"error - idle"});
  CHECK(peer.ending() == Closing::idle);
  after(limits.close + 1ms);
  CHECK(wire.cuts == 1);
}

TEST_CASE_METHOD(PeerFixture, "a peer that had a stream may be without one as long as it likes") {
  opens(1);
  admission.streams[0].outbox->closed(0, 0, false);
  peer.flush(now);
  after(24h);
  CHECK_FALSE(peer.ending());
  opens(2);
  CHECK(peer.streams() == 1);
}

TEST_CASE_METHOD(PeerFixture, "a peer whose streams are refused may go on asking") {
  admission.error = RequestError{.status = 503, .reason = Refusal::no_room};
  for (int i = 0; i < 10; ++i) {
    opens(1);
    after(29s);
  }
  CHECK_FALSE(peer.ending());
}

TEST_CASE_METHOD(PeerFixture, "streams beyond 1024 are to come again at different times") {
  for (std::uint64_t i = 0; i < ClientPeer::max_streams; ++i) opens(i);
  (void)told();
  for (int i = 0; i < 100; ++i) opens(5000);
  std::set<std::string> refusals;
  for (const std::string& line : told()) refusals.insert(line);
  CHECK(refusals.size() > 1);
  for (const char* seconds : {"1", "2", "3", "4", "5"})
    refusals.erase(std::string("error 5000 no_room after ") + seconds + "000");
  CHECK(refusals.empty());
}

TEST_CASE_METHOD(PeerFixture, "streams are checked in turns, each once in a round") {
  admission.room = 0;  // a stream without room says when it is checked
  for (std::uint64_t number = 1; number <= 1000; ++number) opens(number);
  std::size_t before = 0, all = 0;
  do {
    CHECK(peer.check_some(now, 100) <= 110);
    all = 0;
    for (const test::Told& told : admission.streams)
      all += static_cast<std::size_t>(std::ranges::count(told.calls, "tick"));
    CHECK(all - before <= 110);
    before = all;
  } while (!peer.is_checked());
  CHECK(all == 1000);
}

TEST_CASE_METHOD(PeerFixture, "a stream that fails to open stays until its peer is lost") {
  admission.fails = true;  // once it has told the stream that it is ready
  CHECK_THROWS_AS(opens(1), std::bad_alloc);
  peer.fail();
  peer.flush(now);
  CHECK(told() == Lines{"ready 1 s0 default 0 2"});
  CHECK(peer.streams() == 1);
  peer.lost(now);
  CHECK(peer.streams() == 0);
}

TEST_CASE_METHOD(PeerFixture, "a peer is a slow reader too if only the wire has bytes for it") {
  opens(1);
  wire.written = false;
  after(limits.write_stall);
  ++wire.taken;
  after(limits.write_stall);
  after(limits.write_stall);
  CHECK_FALSE(peer.ending());
  after(1ms);
  CHECK(peer.ending() == Closing::slow_reader);
}
