// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/transport/sessions/session_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE_METHOD(SessionFixture, "a silent client is pinged, then given up") {
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

TEST_CASE_METHOD(SessionFixture, "pongs alone do not keep a stream open, a keepalive does") {
  const Time start = Clock::now();
  client.heard_at = start + 25s;  // a pong
  scope.sweep(start + 29s);
  client_says(R"({"type":"keepalive"})");
  CHECK(stream.calls.empty());
  after(31s);
  CHECK(stream.calls.front() == "failed idle");
}

TEST_CASE_METHOD(SessionFixture, "after its end a client need only answer pings") {
  client_says(R"({"type":"end"})");
  client.heard_at = Clock::now() + 60s;
  after(80s);
  CHECK(stream.calls == Calls{"end"});
  after(91s);
  CHECK(stream.calls == Calls{"end", "failed idle", "lost"});
}

TEST_CASE_METHOD(SessionFixture, "a message must be whole in time") {
  client.incomplete_since = Clock::now();
  after(4s);
  CHECK(stream.calls.empty());
  after(6s);
  CHECK(stream.calls == Calls{"failed idle", "lost"});
  CHECK(client.closed == 4408);
}

TEST_CASE_METHOD(SessionFixture, "no time limit of the client runs while it is not read") {
  stream.pause(true);
  client_sends(1);
  client.incomplete_since = Clock::now();
  after(1h);
  CHECK(stream.calls == Calls{"frames 1", "tick"});  // which may shed what it holds
  CHECK(client.seen == Calls{"<ping>"});

  client.incomplete_since.reset();
  stream.pause(false);
  outbox.resume();
  settle();
  after(29s);
  CHECK(stream.calls == Calls{"frames 1", "tick"});
}

TEST_CASE_METHOD(SessionFixture, "after a pause the client's time limits begin anew") {
  stream.pause(true);
  client_says(R"({"type":"end"})");  // from now on a pong is enough
  const Time resumed = Clock::now();
  client.heard_at = resumed - 25s;
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

TEST_CASE("a client that may speak can be given up sooner than one that has ended") {
  SessionFixture fixture({.mute = 15s});
  fixture.after(14s);
  CHECK(fixture.stream.calls.empty());
  fixture.after(16s);
  CHECK(fixture.stream.calls == SessionFixture::Calls{"failed idle", "lost"});
  SessionFixture ended({.mute = 15s});
  ended.client_says(R"({"type":"end"})");
  ended.after(29s);
  CHECK(ended.stream.calls == SessionFixture::Calls{"end"});
}

TEST_CASE("a connection is retired after four hours, give or take a tenth") {
  SessionFixture fixture({.ping = 24h, .idle = 24h, .mute = 24h});
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

TEST_CASE("connections that were opened together are not retired together") {
  int retired = 0;
  for (int i = 0; i < 100; ++i) {
    SessionFixture fixture({.ping = 24h, .idle = 24h, .mute = 24h});
    fixture.after(4h);
    if (!fixture.stream.calls.empty()) ++retired;
  }
  CHECK(retired > 10);
  CHECK(retired < 90);
}

TEST_CASE_METHOD(SessionFixture, "a retired connection's client need only answer pings") {
  client.heard_at = Clock::now() + 5h;
  after(4h + 25min);
  CHECK(stream.calls == Calls{"drain"});
  after(5h + 31s);
  CHECK(stream.calls == Calls{"drain", "failed idle", "lost"});
}

TEST_CASE_METHOD(SessionFixture, "a client that takes no byte for long is a slow reader") {
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
  CHECK_THAT(client.seen[1], Catch::Contains("slow_reader"));
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

TEST_CASE_METHOD(SessionFixture, "a client that hung up is given up, though what it sent waits") {
  stream.pause(true);
  client_sends(1);
  client.hung_up = Clock::now();
  result("1");
  CHECK(stream.written == 0);
  after(4s);
  CHECK(stream.calls == Calls{"frames 1", "tick"});
  after(6s);
  CHECK(stream.calls == Calls{"frames 1", "tick", "lost"});
  CHECK(stats.closed[Closing::client].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "every result is kept until its client has read it") {
  client.stop_reading();
  const std::string large = '"' + std::string(100'000, 'x') + '"';
  for (int i = 0; i < 100; ++i) result(large);
  after(0s);
  CHECK(stream.calls.empty());
  CHECK(stream.written == 0);
  client.read_again();
  settle();
  CHECK(client.seen.size() == 100);
  CHECK(stream.written == 100);
  CHECK(stats.send_buffer.value() == 0);
}

TEST_CASE_METHOD(SessionFixture, "the stream learns what was written before all of it is") {
  client.stop_reading();
  const std::string large = '"' + std::string(100'000, 'x') + '"';
  for (int i = 0; i < 3; ++i) result(large);
  client.read(2);
  settle();
  CHECK(stream.written == 2);
  CHECK(outbox.full());
}

TEST_CASE("a client is no slow reader while its host takes bytes") {
  SessionFixture session({.mute = 24h});
  session.client.stop_reading();
  session.result("1");
  session.client.stuck_since = Clock::now();
  session.client.under_way = 100;
  for (const auto time : {1s, 9s, 17s, 25s}) {
    session.after(time);
    CHECK(session.stream.calls.empty());
    --session.client.under_way;
  }
  session.after(34s);
  session.after(45s);
  CHECK(session.stream.calls == SessionFixture::Calls{"failed slow_reader"});
}

TEST_CASE_METHOD(SessionFixture, "a close that is not answered is waited for, not for ever") {
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
                 "a client that still reads what came before the close has time for it") {
  client.answers_close = false;
  client.under_way = 30;
  outbox.closed(0, 0, false);
  settle();
  for (const auto time : {1s, 5s, 9s, 13s, 17s, 21s, 25s, 29s}) {
    after(time);
    CHECK_FALSE(client.aborted);
    --client.under_way;
  }
  after(33s);
  CHECK_FALSE(client.aborted);
  after(39s);  // it has stopped
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture, "a client whose stream failed has 30 s for what is left") {
  client.answers_close = false;
  client.under_way = 30;
  outbox.error(ErrorCode::no_room, "it held the most");
  settle();
  for (const auto time : {1s, 5s, 9s, 13s, 17s, 21s, 25s, 29s}) {
    after(time);
    CHECK_FALSE(client.aborted);
    --client.under_way;
  }
  after(31s);
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture, "a client that reads no more has five seconds for its close") {
  client.answers_close = false;
  client.under_way = 30;
  outbox.closed(0, 0, false);
  settle();
  after(4s);
  client.under_way = 20;
  after(5s);
  after(9s);
  CHECK_FALSE(client.aborted);
  after(11s);
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture,
                 "a client whose stream failed has no longer for what is left than for a close") {
  client.stop_reading();
  result("1");
  outbox.error(ErrorCode::no_room, "it held the most");
  client.under_way = 30;
  after(0s);
  client.stuck_since = Clock::now() + 5s;  // it takes a byte now and then
  after(4s);
  CHECK_FALSE(client.aborted);
  after(6s);
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture,
                 "an ended stream's client that takes no byte is cut without a word") {
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
