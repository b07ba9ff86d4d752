// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/transport/sessions/session_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE_METHOD(SessionFixture, "a silent client is pinged, and then its stream ends") {
  after(9s);
  CHECK(client.seen.empty());
  after(11s);
  CHECK(client.seen == Calls{"<ping>"});
  after(29s);
  CHECK(stream.calls.empty());
  after(31s);
  CHECK(stream.calls == Calls{"failed idle", "lost"});
  CHECK(client.closed == 4408);
  CHECK(stats.closed[Closing::idle].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "a silent client is pinged every ten seconds, not more often") {
  after(11s);
  after(12s);
  CHECK(client.seen == Calls{"<ping>"});
  after(22s);
  CHECK(client.seen == Calls{"<ping>", "<ping>"});
}

TEST_CASE("a client that always sends is pinged when the service has sent nothing for 25 s") {
  SessionFixture fixture({.idle = 24h, .message_idle = 24h});
  const auto pings_until = [&](std::chrono::seconds time) {
    fixture.client.last_received_at = Clock::now() + time;
    fixture.after(time);
    return fixture.client.seen.size();
  };
  for (const auto time : {5s, 10s, 15s, 20s, 24s}) CHECK(pings_until(time) == 0);
  CHECK(pings_until(26s) == 1);
  CHECK(pings_until(50s) == 1);
  CHECK(pings_until(52s) == 2);
  CHECK(fixture.client.seen.back() == "<ping>");
}

TEST_CASE_METHOD(SessionFixture,
                 "the error of an idle client has the limit, and what keeps a stream open") {
  after(31s);
  CHECK_THAT(client.seen.back(),
             Catch::Contains("nothing was received for 30 s; send keepalive (pings "
                             "do not count)"));
}

TEST_CASE_METHOD(SessionFixture, "a keepalive keeps a stream open, and pongs alone do not") {
  const Time start = Clock::now();
  client.last_received_at = start + 25s;  // a pong
  scope.sweep(start + 29s);
  client_says(R"({"type":"keepalive"})");
  CHECK(stream.calls.empty());
  after(31s);
  CHECK(stream.calls.front() == "failed idle");
}

TEST_CASE_METHOD(SessionFixture, "after its end, a client has only to answer pings") {
  client_says(R"({"type":"end"})");
  client.last_received_at = Clock::now() + 60s;
  after(80s);
  CHECK(stream.calls == Calls{"end"});
  after(91s);
  CHECK(stream.calls == Calls{"end", "failed idle", "lost"});
}

TEST_CASE_METHOD(SessionFixture, "a message that is not complete in time ends its stream") {
  client.incomplete_since = Clock::now();
  after(4s);
  CHECK(stream.calls.empty());
  after(6s);
  CHECK(stream.calls == Calls{"failed idle", "lost"});
  CHECK(client.closed == 4408);
}

TEST_CASE_METHOD(SessionFixture, "the time limits of a client do not run while it is not read") {
  stream.pause(true);
  client_sends(1);
  client.incomplete_since = Clock::now();
  after(1h);
  CHECK(stream.calls == Calls{"frames 1", "tick"});  // which may shed its frames
  CHECK(client.seen == Calls{"<ping>"});

  client.incomplete_since.reset();
  stream.pause(false);
  outbox.resume();
  settle();
  after(29s);
  CHECK(stream.calls == Calls{"frames 1", "tick"});
}

TEST_CASE_METHOD(SessionFixture, "after a pause, the time limits of the client start again") {
  stream.pause(true);
  client_says(R"({"type":"end"})");  // from now on a pong is enough
  const Time resumed = Clock::now();
  client.last_received_at = resumed - 25s;
  client.incomplete_since = resumed - 4s;
  stream.pause(false);
  outbox.resume();
  settle();
  scope.sweep(resumed + 5s);
  client.incomplete_since.reset();
  scope.sweep(resumed + 30s);
  CHECK(stream.calls == Calls{"end"});
  after(31s);
  CHECK(stream.calls == Calls{"end", "failed idle", "lost"});
}

TEST_CASE("a client whose end has arrived over an earlier connection only answers pings") {
  SessionFixture fixture({.message_idle = 15s}, true);
  fixture.client.last_received_at = Clock::now() + 20s;
  fixture.after(20s);
  CHECK(fixture.stream.calls.empty());
}

TEST_CASE("the idle limit of an open stream can be shorter than that of an ended one") {
  SessionFixture fixture({.message_idle = 15s});
  fixture.after(14s);
  CHECK(fixture.stream.calls.empty());
  fixture.after(16s);
  CHECK(fixture.stream.calls == SessionFixture::Calls{"failed idle", "lost"});
  SessionFixture ended({.message_idle = 15s});
  ended.client_says(R"({"type":"end"})");
  ended.after(29s);
  CHECK(ended.stream.calls == SessionFixture::Calls{"end"});
}

TEST_CASE("a connection is retired after four hours, plus or minus a tenth") {
  SessionFixture fixture({.ping = 24h, .idle = 24h, .message_idle = 24h});
  fixture.after(3h + 35min);
  CHECK(fixture.stream.calls.empty());
  fixture.after(4h + 25min);
  fixture.after(4h + 26min);
  CHECK(fixture.stream.calls == SessionFixture::Calls{"drain"});
  fixture.outbox.closed(0, 0, true);
  fixture.settle();
  CHECK(fixture.client.closed == 1012);
  CHECK(fixture.stats.closed[Closing::drain].value() == 1);
}

TEST_CASE("connections that were opened together are retired at different times") {
  int retired = 0;
  for (int i = 0; i < 100; ++i) {
    SessionFixture fixture({.ping = 24h, .idle = 24h, .message_idle = 24h});
    fixture.after(4h);
    if (!fixture.stream.calls.empty()) ++retired;
  }
  CHECK(retired > 10);
  CHECK(retired < 90);
}

TEST_CASE_METHOD(SessionFixture, "the client of a retired connection has only to answer pings") {
  client.last_received_at = Clock::now() + 5h;
  after(4h + 25min);
  CHECK(stream.calls == Calls{"drain"});
  after(5h + 31s);
  CHECK(stream.calls == Calls{"drain", "failed idle", "lost"});
}

TEST_CASE_METHOD(SessionFixture, "a client that takes no bytes for long is a slow reader") {
  client.stop_reading();
  result("1");
  result("2");
  client.stuck_since = Clock::now();
  after(9s);
  CHECK(stream.calls.empty());
  after(11s);
  CHECK(stream.calls == Calls{"failed slow_reader"});

  client.read_again();  // in time for the close
  settle();
  REQUIRE(client.seen.size() == 2);
  CHECK_THAT(client.seen[0], Catch::Contains("result"));
  CHECK_THAT(client.seen[1],
             Catch::Contains("slow_reader") && Catch::Contains("read no results for 10 s"));
  CHECK(client.closed == 1008);
  CHECK(stats.closed[Closing::slow_reader].value() == 1);
}

TEST_CASE_METHOD(SessionFixture,
                 "a client whose connection is reset is lost at once, also while paused") {
  stream.pause(true);
  client_sends(1);
  after(1s);
  CHECK(stream.calls == Calls{"frames 1", "tick"});
  client.reset = true;
  after(1s);
  CHECK(stream.calls == Calls{"frames 1", "tick", "lost"});
}

TEST_CASE_METHOD(SessionFixture, "a client that has closed is dropped, even if its messages wait") {
  stream.pause(true);
  client_sends(1);
  client.peer_closed = Clock::now();
  result("1");
  CHECK(stream.written == 0);
  after(4s);
  CHECK(stream.calls == Calls{"frames 1", "tick"});
  after(6s);
  CHECK(stream.calls == Calls{"frames 1", "tick", "lost"});
  CHECK(stats.closed[Closing::client].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "the stream learns of written messages before all are written") {
  client.stop_reading();
  const std::string large = '"' + std::string(100'000, 'x') + '"';
  for (int i = 0; i < 3; ++i) result(large);
  client.read(2);
  settle();
  CHECK(stream.written == 2);
  CHECK(outbox.full());
}

TEST_CASE("a client is not a slow reader while its host takes bytes") {
  SessionFixture session({.message_idle = 24h});
  session.client.stop_reading();
  session.result("1");
  session.client.stuck_since = Clock::now();
  session.client.unacknowledged_bytes = 100;
  for (const auto time : {1s, 9s, 17s, 25s}) {
    session.after(time);
    CHECK(session.stream.calls.empty());
    --session.client.unacknowledged_bytes;
  }
  session.after(34s);
  session.after(45s);
  CHECK(session.stream.calls == SessionFixture::Calls{"failed slow_reader"});
}

TEST_CASE_METHOD(SessionFixture, "the wait for the answer to a close ends after five seconds") {
  client.answers_close = false;
  outbox.closed(0, 0, false);
  settle();
  CHECK(client.closed == 1000);
  after(4s);
  CHECK_FALSE(client.aborted);
  after(6s);
  CHECK(client.aborted);
  CHECK(stream.calls == Calls{"lost"});
}

TEST_CASE_METHOD(SessionFixture,
                 "a client that still reads the messages before the close is not cut") {
  client.answers_close = false;
  client.unacknowledged_bytes = 30;
  outbox.closed(0, 0, false);
  settle();
  for (const auto time : {1s, 5s, 9s, 13s, 17s, 21s, 25s, 29s}) {
    after(time);
    CHECK_FALSE(client.aborted);
    --client.unacknowledged_bytes;
  }
  after(33s);
  CHECK_FALSE(client.aborted);
  after(39s);  // the client has stopped reading
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture, "a client whose stream failed has 30 s to read the rest") {
  client.answers_close = false;
  client.unacknowledged_bytes = 30;
  outbox.error(ErrorCode::no_room, "it held the most");
  settle();
  for (const auto time : {1s, 5s, 9s, 13s, 17s, 21s, 25s, 29s}) {
    after(time);
    CHECK_FALSE(client.aborted);
    --client.unacknowledged_bytes;
  }
  after(31s);
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture, "a client that stops reading has five seconds for its close") {
  client.answers_close = false;
  client.unacknowledged_bytes = 30;
  outbox.closed(0, 0, false);
  settle();
  after(4s);
  client.unacknowledged_bytes = 20;
  after(5s);
  after(9s);
  CHECK_FALSE(client.aborted);
  after(11s);
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture,
                 "a client whose stream failed and that does not read has five seconds") {
  client.stop_reading();
  result("1");
  outbox.error(ErrorCode::no_room, "it held the most");
  client.unacknowledged_bytes = 30;
  after(0s);
  client.stuck_since = Clock::now() + 5s;  // the client sometimes reads a byte
  after(4s);
  CHECK_FALSE(client.aborted);
  after(6s);
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture,
                 "the client of an ended stream that takes no bytes is cut without an error") {
  client.stop_reading();
  result("1");
  outbox.closed(0, 0, false);
  client.stuck_since = Clock::now();
  after(9s);
  CHECK_FALSE(client.aborted);
  after(11s);
  CHECK(client.aborted);
  CHECK(stream.calls == Calls{"lost"});
}
