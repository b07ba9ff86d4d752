// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/session.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "tests/transport/sessions/session_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;
using How = Connection::Ended::How;

TEST_CASE_METHOD(SessionFixture, "the client's messages reach the stream in order") {
  client.binary("abcd");
  client.text(R"({"type":"flush","mark":7})");
  client.text(R"({"type":"flush"})");
  client.text(R"({"type":"keepalive"})");
  client.text(R"({"type":"gap","frames":1600})");
  client.text(R"({"type":"reset"})");
  client.binary("ef");
  client.text(R"({"type":"end"})");
  settle();
  CHECK(stream.calls ==
        Calls{"frames 4", "flush 7", "flush", "gap 1600", "reset", "frames 2", "end"});
  CHECK(stats.messages[MessageType::data].value() == 2);
  CHECK(stats.messages[MessageType::control].value() == 5);
  CHECK(stats.messages[MessageType::close].value() == 1);
}

TEST_CASE_METHOD(SessionFixture,
                 "a long message is given in pieces, in several turns, before the next message") {
  stream.piece = 4;
  client.turn_over = true;
  client.binary("0123456789");
  client.text(R"({"type":"flush"})");
  settle();
  CHECK(stream.calls == Calls{"frames 4"});
  client.next_turn();
  settle();
  CHECK(stream.calls == Calls{"frames 4", "frames 4", "frames 2", "flush"});
  CHECK(stats.messages[MessageType::data].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "the rest of a message is dropped if its stream has failed") {
  stream.piece = 4;
  client.turn_over = true;
  client_sends(10);
  outbox.error(ErrorCode::no_worker, "no worker");
  client.next_turn();
  settle();
  CHECK(stream.calls.front() == "frames 4");
  CHECK(std::ranges::count(stream.calls, "frames 4") == 1);
}

TEST_CASE_METHOD(SessionFixture, "a client that only reads after its end is cut when it is gone") {
  client_says(R"({"type":"end"})");
  client_ends({.how = Connection::Ended::How::half_closed});
  CHECK(client.seen == Calls{"<ping>"});  // a host answers it with a reset if its client is gone
  after(1s);
  CHECK_FALSE(client.aborted);
  client.reset = true;
  after(1s);
  CHECK(client.aborted);
  CHECK(stream.calls.back() == "lost");
}

TEST_CASE_METHOD(SessionFixture, "an empty message is a keepalive") {
  client_sends(0);
  CHECK(stream.calls.empty());
  CHECK(stats.messages[MessageType::control].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "a rejected message is received, but not accepted") {
  stream.rejects = &outbox;
  client_sends(4);
  CHECK(stream.calls == Calls{"frames 4"});
  CHECK(stats.received.value() == 4);
  CHECK(stats.messages[MessageType::data].value() == 0);
  CHECK(stats.message.sum() == 0);
}

TEST_CASE_METHOD(SessionFixture, "rejected messages are counted by their fault") {
  outbox.rejected(ErrorCode::values, "half a frame", 0);
  outbox.rejected(ErrorCode::values, "NaN", 3);
  outbox.rejected(ErrorCode::too_long, "too long", 0);
  outbox.rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  CHECK(stats.rejected[MessageFault::format].value() == 1);
  CHECK(stats.rejected[MessageFault::nonfinite].value() == 1);
  CHECK(stats.rejected[MessageFault::size].value() == 1);
  CHECK(stats.rejected[MessageFault::unknown_stream].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "messages in the outbox are written in order") {
  outbox.ready({.stream = "kitchen", .pipeline = "default", .frame_bytes = 2});
  outbox.result({.seq = 0, .end = 1600}, {Answer::Kind::json, "1"});
  outbox.flushed(7, 0);
  outbox.result({.seq = 1, .end = 1600}, {Answer::Kind::json, "2"});
  settle();
  REQUIRE(client.seen.size() == 4);
  CHECK_THAT(client.seen[0], Catch::Contains("ready"));
  CHECK_THAT(client.seen[1], Catch::Contains(R"("seq":0)"));
  CHECK(client.seen[2] == R"({"type":"flushed","mark":7})");
  CHECK_THAT(client.seen[3], Catch::Contains(R"("seq":1)"));
  CHECK(stream.written == 2);
  CHECK(outbox.queue().unsent() == 0);
  CHECK(stats.send_buffer.value() == 0);
}

TEST_CASE_METHOD(SessionFixture, "a stream that has ended is closed with 1000") {
  client_says(R"({"type":"end"})");
  outbox.closed(2400, 2, false);
  settle();
  CHECK(client.seen == Calls{R"({"type":"closed","frames":2400,"chunks":2})"});
  CHECK(client.closed == 1000);
  CHECK(stream.calls == Calls{"end", "lost clean"});
  CHECK(stats.closed[Closing::client].value() == 1);
  CHECK(stats.connections.value() == 0);
}

TEST_CASE_METHOD(SessionFixture, "a drained stream is closed with 1012") {
  outbox.goaway();
  outbox.closed(0, 0, true);
  settle();
  CHECK(client.closed == 1012);
  CHECK(stats.closed[Closing::drain].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "the client's own close with 1000 is clean") {
  client_ends({How::closed, 1000});
  CHECK(stream.calls == Calls{"lost clean"});
}

TEST_CASE_METHOD(SessionFixture, "any end other than a close with 1000 is not clean") {
  const auto [how, code, reason] = GENERATE(
      table<How, std::uint16_t, Closing>({{How::closed, std::uint16_t{1001}, Closing::client},
                                          {How::closed, std::uint16_t{1005}, Closing::client},
                                          {How::lost, std::uint16_t{0}, Closing::client},
                                          {How::too_big, std::uint16_t{0}, Closing::too_big},
                                          {How::protocol, std::uint16_t{0}, Closing::protocol}}));
  client_ends({how, code});
  CHECK(stream.calls == Calls{"lost"});
  CHECK(stats.closed[reason].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "an invalid message ends the stream") {
  client_says(R"({"type":"flash"})");
  CHECK(stream.calls == Calls{"failed schema", "lost"});
  CHECK(
      client.seen ==
      Calls{
          R"({"type":"error","code":"schema","message":"unknown type; must be flush, gap, reset, message, set, keepalive, end or ack"})"});
  CHECK(client.closed == 4400);
  CHECK(stats.rejected[MessageFault::schema].value() == 1);
  CHECK(stats.closed[Closing::protocol].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "messages between an error and the close are ignored") {
  client.answers_close = false;
  client_says("no JSON");
  client_sends(4);
  client_says(R"({"type":"end"})");
  CHECK(stream.calls == Calls{"failed schema"});
}

TEST_CASE_METHOD(SessionFixture, "after its end, a stream accepts only another end") {
  client_says(R"({"type":"end"})");
  client_says(R"({"type":"end"})");
  client_says(R"({"type":"keepalive"})");
  CHECK(client.seen.empty());
  client_sends(4);
  client_says(R"({"type":"flush"})");
  CHECK(stream.calls == Calls{"end"});
  REQUIRE(client.seen.size() == 2);
  CHECK_THAT(client.seen[0], Catch::Contains(R"("rejected","code":"unknown_stream")"));
}

TEST_CASE_METHOD(SessionFixture, "a paused stream's client is not read until it resumes") {
  stream.pause(true);
  client_sends(1);  // was being received
  client_sends(2);
  client_sends(3);
  CHECK(stream.calls == Calls{"frames 1"});
  CHECK(client.unreceived() == 2);
  CHECK(stats.paused.value() == 1);

  outbox.resume();  // but it is still full
  settle();
  CHECK(client.unreceived() == 2);

  stream.pause(false);
  outbox.resume();
  settle();
  CHECK(stream.calls == Calls{"frames 1", "frames 2", "frames 3"});
  CHECK(stats.paused.value() == 0);
  CHECK(stats.paused_time.value() > 0);
}

TEST_CASE_METHOD(SessionFixture, "results are sent while the client is not read") {
  stream.pause(true);
  client_sends(1);
  result("1");
  CHECK(client.seen.size() == 1);
}

TEST_CASE_METHOD(SessionFixture, "a client that does not read its results is not read either") {
  client.stop_reading();
  result('"' + std::string(64 * 1024, 'x') + '"');
  CHECK(outbox.full());
  client_sends(1);
  client_sends(2);
  CHECK(client.unreceived() == 1);

  client.read_again();
  settle();
  CHECK_FALSE(outbox.full());
  CHECK(client.unreceived() == 0);
}

TEST_CASE_METHOD(SessionFixture, "a client is read again when half of a full queue is sent") {
  MillraceV1Conversation outbox_of_another(scope, {});
  const std::string answer = '"' + std::string(16 * 1024, 'x') + '"';
  for (int i = 0; i < 4; ++i) outbox_of_another.result({}, {Answer::Kind::json, answer});
  for (int i = 0; i < 3; ++i) {
    CHECK(outbox_of_another.full());
    (void)outbox_of_another.queue().next();
    outbox_of_another.queue().sent();
  }
  CHECK_FALSE(outbox_of_another.full());
}

TEST_CASE_METHOD(SessionFixture, "an error reaches a client that is not read") {
  stream.pause(true);
  client_sends(1);
  outbox.error(ErrorCode::no_worker, "no worker was available in time");
  settle();
  CHECK(client.closed == 1013);
  CHECK(stream.calls == Calls{"frames 1", "lost"});
  CHECK(stats.closed[Closing::policy].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "after an error, no more messages are queued") {
  outbox.error(ErrorCode::internal, "sorry");
  outbox.result({}, {Answer::Kind::json, "1"});
  outbox.closed(1, 1, false);
  settle();
  CHECK(client.seen.size() == 1);
  CHECK(client.closed == 1011);
  CHECK(stats.closed[Closing::internal].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "a stop cuts the connection, whatever waits") {
  client.stop_reading();
  result("1");
  stream.pause(true);
  client_sends(1);
  scope.stop();
  settle();
  CHECK(stream.calls == Calls{"frames 1", "lost"});
  CHECK(stats.closed[Closing::drain].value() == 1);
  CHECK(scope.connections() == 0);
}

TEST_CASE_METHOD(SessionFixture, "unsent messages to a lost client do not count as written") {
  client.stop_reading();
  result("1");
  CHECK(stats.send_buffer.value() > 0);
  client_ends({How::lost});
  CHECK(stats.closed[Closing::client].value() == 1);
  CHECK(stream.written == 0);
}

TEST_CASE_METHOD(SessionFixture, "messages in an outbox no longer count when it is destroyed") {
  {
    MillraceV1Conversation other(scope, {});
    other.flushed(7, 0);
    CHECK(stats.send_buffer.value() > 0);
  }
  CHECK(stats.send_buffer.value() == 0);
}

TEST_CASE_METHOD(SessionFixture, "a lost connection is cut, in case a send is stuck in it") {
  client_ends({How::lost});
  CHECK(client.aborted);
}

TEST_CASE_METHOD(SessionFixture, "a send that fails ends a connection that is not read") {
  stream.pause(true);
  client_sends(1);
  client.send_fails = true;
  result("1");
  CHECK(stream.calls == Calls{"frames 1", "lost"});
  CHECK(scope.connections() == 0);
}

TEST_CASE_METHOD(SessionFixture, "an exception of a task is reported and not passed on") {
  scope.spawn([]() -> Task<> {
    throw std::runtime_error("no memory");
    co_return;
  }());
  settle();
  CHECK(reports == std::vector<std::string>{"no memory"});
  CHECK(stream.calls.empty());
}

TEST_CASE_METHOD(SessionFixture, "an answer of bytes is a binary message") {
  outbox.ready({.stream = "kitchen", .pipeline = "default", .frame_bytes = 2});
  outbox.result({.seq = 3, .begin = 4800, .end = 6400, .rate = 16000, .flags = 16},
                {Answer::Kind::bytes, std::string("\0\1", 2)});
  settle();
  REQUIRE(client.seen.size() == 2);
  client_protocol::Decoder decoder(client.seen[1].size());
  const auto message = decoder.to_client(std::as_bytes(std::span(client.seen[1])));
  REQUIRE(message.has_value());
  const auto* result = std::get_if<client_protocol::Result>(&*message);
  REQUIRE(result != nullptr);
  CHECK(result->seq == 3);
  CHECK(result->end_s == 0.4);
  CHECK(result->flags == 16);
  CHECK(result->data.size() == 2);
}

TEST_CASE("a result longer than the limit of a message is sent as an error in a text message") {
  SessionFixture session(ConnectionLimits{.max_message_sent = 300});
  const auto answered = [&](Answer::Kind kind, std::string data) {
    session.outbox.result({}, {kind, std::move(data)});
    session.settle();
    CHECK(session.client.last_kind == Connection::Kind::text);
    return session.client.seen.back();
  };
  const auto too_long = Catch::EndsWith(R"(,"error":"too_long"})");
  CHECK_THAT(answered(Answer::Kind::bytes, std::string(300, 'x')), too_long);
  CHECK_THAT(answered(Answer::Kind::text, std::string(100, '\n') + std::string(50, 'x')), too_long);
  CHECK_THAT(answered(Answer::Kind::text, std::string(100, 'x')), Catch::EndsWith(R"(x"})"));
}
