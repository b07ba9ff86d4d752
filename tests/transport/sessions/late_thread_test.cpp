// SPDX-License-Identifier: Apache-2.0
// The time limits of a client whose bytes have arrived, while the thread has not examined them.
#include <catch2/catch.hpp>

#include "tests/transport/sessions/session_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE_METHOD(SessionFixture,
                 "a client is not late while bytes that it sent in time are unexamined") {
  client.incomplete_since = Clock::now();
  client.unexamined_bytes = 100;
  after(6s);
  client.examined_bytes = 99;
  after(7s);
  CHECK(stream.calls.empty());
  client.unexamined_bytes = 0;  // they were not the rest of the message
  after(7s);
  CHECK(stream.calls == Calls{"failed idle", "lost"});
}

TEST_CASE_METHOD(SessionFixture,
                 "a client is not idle while bytes that it sent in time are unexamined") {
  client.unexamined_bytes = 100;
  after(31s);
  CHECK(stream.calls.empty());
  client.unexamined_bytes = 0;
  client_says(R"({"type":"keepalive"})");
  after(29s);
  CHECK(stream.calls.empty());
}

TEST_CASE_METHOD(SessionFixture, "bytes that come later do not excuse a late client") {
  SECTION("of an unfinished message") { client.incomplete_since = Clock::now() + 25s; }
  SECTION("of pings") {}
  client.unexamined_bytes = 100;
  after(31s);
  CHECK(stream.calls.empty());
  client.examined_bytes = 100;
  after(31s);
  CHECK(stream.calls == Calls{"failed idle", "lost"});
}

TEST_CASE_METHOD(SessionFixture, "a client that was late is judged anew for its next message") {
  client.incomplete_since = Clock::now();
  client.unexamined_bytes = 100;
  after(6s);
  client.examined_bytes = 100;
  client.incomplete_since = Clock::now() + 5s;
  after(7s);
  after(11s);
  CHECK(stream.calls.empty());
}
