// SPDX-License-Identifier: Apache-2.0
// A ZeroMQ peer when an allocation fails, and when memory is short.
#include <catch2/catch.hpp>
#include <new>

#include "tests/support/allocations.h"
#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
using test::Lines;
using test::PeerFixture;
namespace cp = client_protocol;

TEST_CASE("a peer can be lost safely after any allocation of its Open has failed") {
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

TEST_CASE_METHOD(PeerFixture, "a stream that is evicted drops its results and no other stream's") {
  opens(1);
  opens(2);
  (void)received();
  wire.room = 2;
  for (std::uint64_t row = 0; row < 4; ++row) {
    result(0, "large", row);
    result(1, "kept", row);
  }
  peer.flush(now);
  result(1, "kept", 4);
  result(0, "large", 4);
  ClientOutput& evicted = *admission.streams[0].outbox;
  const auto all = stats.send_buffer.value(),
             held = static_cast<std::int64_t>(evicted.reclaimable());
  CHECK(held > 0);
  evicted.drop_queued();
  CHECK(evicted.reclaimable() == 0);
  CHECK(stats.send_buffer.value() == all - held);
  evicted.error(ErrorCode::no_room, "memory is short");
  wire.room = 100;
  peer.flush(now);
  CHECK(received() == Lines{"result 1 0 large", "result 2 0 kept", "result 2 1 kept",
                            "result 2 2 kept", "result 2 3 kept", "result 2 4 kept",
                            "error 1 no_room"});
  CHECK(peer.streams() == 1);
  CHECK(stats.send_buffer.value() == 0);
}

TEST_CASE_METHOD(PeerFixture, "a stream whose last message is queued has nothing to drop") {
  opens(1);
  (void)received();
  wire.reads = false;
  result(0, "a");
  admission.streams[0].outbox->closed(1, 1, false);
  CHECK(admission.streams[0].outbox->reclaimable() == 0);
  admission.streams[0].outbox->drop_queued();
  wire.reads = true;
  peer.flush(now);
  CHECK(received() == Lines{"result 1 0 a", "closed 1 1 1"});
}

TEST_CASE_METHOD(PeerFixture, "dropping results needs no memory") {
  opens(1);
  opens(2);
  wire.reads = false;
  result(0, std::string(1 << 20, 'x'));
  result(1, std::string(1 << 16, 'x'));
  const test::Scarcity scarcity(1);
  admission.streams[0].outbox->drop_queued();
  CHECK(admission.streams[0].outbox->reclaimable() == 0);
}

TEST_CASE("a result for which there is no memory leaves no part before the next message") {
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t waiting = i % 10, nth = 1 + i / 10;
    INFO(waiting << " waiting, allocation " << nth);
    PeerFixture fixture;
    fixture.opens(1);
    (void)fixture.received();
    for (std::size_t before = 0; before < waiting; ++before) fixture.result(0, "a");
    std::string large(5'000, 'x');
    try {
      const test::FailingAllocation failing(nth);
      fixture.result(0, std::move(large));
    } catch (const std::bad_alloc&) {
      fixture.admission.streams[0].outbox->error(ErrorCode::internal, "no memory for a result");
      fixture.peer.flush(fixture.now);
      Lines expected(waiting, "result 1 0 a");
      expected.emplace_back("error 1 internal");
      CHECK(fixture.received() == expected);
    }
  }
}
