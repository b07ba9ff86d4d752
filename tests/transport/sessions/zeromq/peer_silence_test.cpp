// SPDX-License-Identifier: Apache-2.0
// A peer without a stream: its time limit, and refused streams.
#include <algorithm>
#include <catch2/catch.hpp>
#include <new>
#include <set>

#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::Lines;
using test::PeerFixture;

TEST_CASE_METHOD(
    PeerFixture,
    "a peer that opens no stream receives an error, and is then cut, whatever else it sends") {
  admission.error = RequestError{.status = 503, .reason = Refusal::no_room};
  opens(1);
  (void)received();
  after(29s);
  sends(1, 0, 1);
  (void)received();
  after(1s);
  CHECK(received().empty());
  after(1ms);
  CHECK(received() == Lines{"error - idle"});
  CHECK(peer.ending() == Closing::idle);
  after(limits.close + 1ms);
  CHECK(wire.cuts == 1);
}

TEST_CASE_METHOD(PeerFixture, "a peer that has had a stream may stay without one") {
  opens(1);
  admission.streams[0].outbox->closed(0, 0, false);
  peer.flush(now);
  after(24h);
  CHECK_FALSE(peer.ending());
  opens(2);
  CHECK(peer.streams() == 1);
}

TEST_CASE_METHOD(PeerFixture, "a peer whose streams are refused may open further ones") {
  admission.error = RequestError{.status = 503, .reason = Refusal::no_room};
  for (int i = 0; i < 10; ++i) {
    opens(1);
    after(29s);
  }
  CHECK_FALSE(peer.ending());
}

TEST_CASE_METHOD(PeerFixture, "with a list of tokens an Open needs one of them") {
  access.replace({.tokens = std::make_shared<const TokenList>(
                      *TokenList::parse(to_hex(digest_of("secret")) + " alice"))});
  says(client_protocol::Open{.stream = 1});
  says(client_protocol::Open{.stream = 1, .token = "secre"});
  CHECK(received() == Lines{"error 1 unauthenticated", "error 1 unauthenticated"});
  CHECK(stats.refused[Refusal::unauthenticated].value() == 2);
  CHECK(admission.requests.empty());
  says(client_protocol::Open{.stream = 1, .token = "secret"});
  CHECK(received() == Lines{"ready 1 s0 default 0 2", "credit 1 100"});
}

TEST_CASE_METHOD(PeerFixture, "streams beyond 1024 are refused with different times to retry") {
  for (std::uint64_t i = 0; i < ClientPeer::max_streams; ++i) opens(i);
  (void)received();
  for (int i = 0; i < 100; ++i) opens(5000);
  std::set<std::string> refusals;
  for (const std::string& line : received()) refusals.insert(line);
  CHECK(refusals.size() > 1);
  for (const char* seconds : {"1", "2", "3", "4", "5"})
    refusals.erase(std::string("error 5000 no_room after ") + seconds + "000");
  CHECK(refusals.empty());
}

TEST_CASE_METHOD(PeerFixture, "streams are checked in parts, each stream once in a round") {
  admission.credit = 0;  // a stream without credit records its checks
  for (std::uint64_t number = 1; number <= 1000; ++number) opens(number);
  std::size_t before = 0, all = 0;
  do {
    CHECK(peer.check_some(now, 100) <= 110);
    all = 0;
    for (const test::RecordedStream& stream : admission.streams)
      all += static_cast<std::size_t>(std::ranges::count(stream.calls, "tick"));
    CHECK(all - before <= 110);
    before = all;
  } while (!peer.is_checked());
  CHECK(all == 1000);
}

TEST_CASE_METHOD(PeerFixture, "a stream that fails to open stays until its peer is lost") {
  admission.fails = true;  // after ready()
  CHECK_THROWS_AS(opens(1), std::bad_alloc);
  peer.fail();
  peer.flush(now);
  CHECK(received() == Lines{"ready 1 s0 default 0 2"});
  CHECK(peer.streams() == 1);
  peer.lost(now);
  CHECK(peer.streams() == 0);
}

TEST_CASE_METHOD(PeerFixture, "a peer is also a slow reader if only the wire has bytes for it") {
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
