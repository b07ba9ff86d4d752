// SPDX-License-Identifier: Apache-2.0
// A ZeroMQ peer when an allocation fails, and when memory is short.
#include <catch2/catch.hpp>
#include <new>

#include "tests/support/allocations.h"
#include "tests/transport/peer_fixture.h"

using namespace millrace;
using test::Lines;
using test::PeerFixture;
namespace cp = client_protocol;

TEST_CASE("a peer that has no memory to open a stream is lost without harm") {
  for (std::size_t nth = 1; nth < 40; ++nth) {
    INFO(nth);
    PeerFixture fixture;
    try {
      const test::FailingAllocation failing(nth);
      fixture.peer.received(cp::ToService(cp::Open{.stream = 1}), fixture.now);
    } catch (const std::bad_alloc&) {
      fixture.peer.fail();
    }
    fixture.peer.lost(fixture.now);
    CHECK(fixture.peer.streams() == 0);
  }
}
