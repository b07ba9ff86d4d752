// SPDX-License-Identifier: Apache-2.0
// A peer without a stream: how long it may be one.
#include <catch2/catch.hpp>

#include "tests/transport/peer_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::Lines;
using test::PeerFixture;

TEST_CASE_METHOD(PeerFixture, "a peer that opens no stream and says nothing is told so, then cut") {
  door.error = RequestError{.status = 503, .reason = Refusal::no_room};
  opens(1);
  (void)told();
  after(20s);
  sends(1, 0, 1);
  (void)told();
  after(limits.idle);
  CHECK(told().empty());
  after(1ms);
  CHECK(told() == Lines{"error - idle"});
  CHECK(peer.ending() == Closing::idle);
  after(limits.close + 1ms);
  CHECK(wire.cuts == 1);
}

TEST_CASE_METHOD(PeerFixture, "a peer that had a stream may be without one as long as it likes") {
  opens(1);
  door.streams[0].outbox->closed(0, 0, false);
  peer.flush(now);
  after(24h);
  CHECK_FALSE(peer.ending());
  opens(2);
  CHECK(peer.streams() == 1);
}
