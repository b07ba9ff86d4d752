// SPDX-License-Identifier: Apache-2.0
// A stream number that is reused while a worker still has rows of the previous stream.
#include <catch2/catch.hpp>

#include "tests/transport/sessions/plain_stream.h"
#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
using test::Lines;
namespace cp = client_protocol;

namespace {

struct Again {
  Again() {
    says(cp::Open{.stream = 1});
    sends_row();
    before().stream.batched(0, now);
    says(cp::Gap{.stream = 1, .frames = cp::max_number});
    says(cp::Open{.stream = 1});
  }

  template <class Message>
  void says(const Message& message) {
    peer.received(cp::ToService(message), now);
    peer.flush(now);
  }
  void sends_row() {
    const std::vector<std::byte> bytes(2 * 10);
    says(cp::Frames{.stream = 1, .at = 0, .bytes = bytes});
  }
  test::PlainStream& before() { return *admission.streams.at(0); }
  test::PlainStream& after() { return *admission.streams.at(1); }
  void answers(test::PlainStream& plain, std::string data) {
    plain.stream.done({.seq = 0, .answer = {Answer::Kind::text, std::move(data)}, .at = {}}, now);
    peer.flush(now);
  }
  Lines received() { return std::exchange(wire.lines, {}); }

  ConnectionLimits limits;
  TransportStats stats;
  cp::Encoder encoder;
  test::PlainAdmission admission{{.size = 10}, 100};
  test::MemoryWire wire;
  RetryTimes retry_times;
  ClientAccess access;
  PeerContext context{admission, encoder, limits, stats, retry_times, access};
  Time now{std::chrono::hours(1)};
  ClientPeer peer{wire, context, now};
};

}  // namespace

TEST_CASE_METHOD(Again,
                 "an answer for an old stream is not sent to the new stream with its number") {
  CHECK(received() == Lines{"ready 1 s default 0 2", "credit 1 100", "error 1 values",
                            "ready 1 s default 0 2", "credit 1 100"});
  sends_row();
  answers(before(), "of the one before");
  CHECK(received().empty());
  CHECK(before().stats.dropped[ResultLoss::stream_closed].value() == 1);
  after().stream.batched(0, now);
  answers(after(), "mine");
  CHECK(received() == Lines{"result 1 0 mine"});
}
