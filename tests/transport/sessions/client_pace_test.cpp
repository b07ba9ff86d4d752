// SPDX-License-Identifier: Apache-2.0
// Clients that send faster than their limits.
#include <catch2/catch.hpp>

#include "tests/transport/sessions/session_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

ConnectionLimits slow() {
  ConnectionLimits limits;
  limits.messages = RateRule(10, 20);
  limits.controls = RateRule(2, 5);
  return limits;
}

struct PacedSession : SessionFixture {
  PacedSession() : SessionFixture(slow()) {}
  ~PacedSession() {
    scope.stop();  // a session that is not read does not notice the end of its connection
    settle();
  }
  void messages(int count) {
    for (; count > 0; --count) client_sends(2);
  }
  std::ptrdiff_t received() const { return std::ranges::count(stream.calls, "frames 2"); }
};

}  // namespace

TEST_CASE_METHOD(PacedSession, "a client that sends too fast is not read until time has passed") {
  messages(30);
  CHECK(received() == 21);
  CHECK(stats.paused.value() == 1);
  after(1ms);
  CHECK(stats.paused.value() == 1);
  CHECK(received() == 21);
  after(500ms);
  CHECK(received() > 21);
  CHECK(stats.rejected[MessageFault::rate_limit].value() == 0);
}

TEST_CASE_METHOD(PacedSession, "a client that keeps its rate is never paused") {
  messages(20);
  CHECK(received() == 20);
  CHECK(stats.paused.value() == 0);
}

TEST_CASE_METHOD(PacedSession, "a client of too many control frames is not read for a while") {
  client.control_frames = 9;
  client.next_turn();
  settle();
  messages(1);
  CHECK(received() == 0);
  after(1900ms);
  CHECK(received() == 0);
  after(2100ms);
  CHECK(received() == 1);
}

TEST_CASE("without limits, a client is read as fast as it sends") {
  SessionFixture fixture;
  for (int i = 0; i < 2000; ++i) fixture.client_sends(2);
  CHECK(fixture.stream.calls.size() == 2000);
}
