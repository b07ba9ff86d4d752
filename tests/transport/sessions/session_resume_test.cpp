// SPDX-License-Identifier: Apache-2.0
// Sessions of streams that outlive their connections.
#include <catch2/catch.hpp>

#include "tests/transport/sessions/session_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE("a stream that outlives its connection fails if its client only answers pings") {
  SessionFixture fixture;
  fixture.stream.resumes = true;
  fixture.client.last_received_at = Clock::now() + 25s;
  fixture.after(31s);
  CHECK(fixture.stream.calls == SessionFixture::Calls{"failed idle", "lost"});
}

TEST_CASE("a stream that outlives its connection waits for a client that falls silent") {
  SessionFixture fixture;
  fixture.stream.resumes = true;
  SECTION("between two messages") { fixture.after(31s); }
  SECTION("in a message") {
    fixture.client.incomplete_since = Clock::now();
    fixture.after(6s);
  }
  SECTION("while it has results to read") {
    fixture.client.stop_reading();
    fixture.client.stuck_since = Clock::now();
    fixture.result("1");
    fixture.after(0s);
    fixture.after(11s);
  }
  CHECK(fixture.stream.calls == SessionFixture::Calls{"lost"});
  CHECK(fixture.client.aborted);
  CHECK(!fixture.client.closed);
}

TEST_CASE_METHOD(SessionFixture, "input after the end of a stream that resumes has no effect") {
  stream.resumes = true;
  client_says(R"({"type":"end"})");
  client_sends(2);
  client_says(R"({"type":"flush"})");
  CHECK(stream.calls == Calls{"end"});
  CHECK(client.seen.empty());
}

TEST_CASE("a client has room while less than half of its limit is unsent") {
  SessionFixture fixture({.unsent = 1000});
  fixture.client.stop_reading();
  fixture.result(std::string(300, '1'));
  CHECK(fixture.outbox.has_room());
  fixture.result(std::string(300, '1'));
  CHECK_FALSE(fixture.outbox.has_room());
  CHECK_FALSE(fixture.outbox.full());
}
