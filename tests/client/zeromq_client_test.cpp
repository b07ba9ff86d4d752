// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <latch>
#include <optional>

#include "client/client.h"
#include "tests/client/scripted_router.h"
#include "tests/client/stream_texts.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::literals;
using Answered = client_event::Result;
namespace cp = client_protocol;

namespace {

// Ignores other messages before this one.
bool await_message(ScriptedRouter& service, const std::string& words) {
  for (;;) {
    const std::string message = service.next_message();
    if (message == words || message.empty()) return message == words;
  }
}

}  // namespace

TEST_CASE("a stream over ZeroMQ is opened, sent and closed") {
  ScriptedRouter service(echo());
  Client client(service.url());
  ClientStream stream = client.open({.id = "mic", .rate = 16000});
  CHECK(stream.name() == "mic-1");
  stream.send(bytes_in("aabb"));
  stream.flush(7);
  stream.end();
  CHECK(std::get<Answered>(*stream.next()).answer == Answer{Answer::Kind::text, "aabb"});
  CHECK(stream.next() == ClientEvent(client_event::Flushed{7}));
  CHECK(stream.next() == ClientEvent(client_event::Closed{5, 2}));
  CHECK_FALSE(stream.next());
  CHECK(service.next_message() == "1 open pipeline=default id=mic rate=16000 resume");
  CHECK(service.next_message() == "1 frames at 0: aabb");
  CHECK(service.next_message() == "1 flush 7");
  CHECK(service.next_message() == "1 end");
}

TEST_CASE("many streams share one connection, and each gets its own results") {
  ScriptedRouter service(echo());
  Client client(service.url());
  std::vector<ClientStream> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(client.open());
  const auto text_of = [](const ClientStream& stream) {
    return std::to_string(1000 + stream.number());
  };
  for (ClientStream& stream : streams) {
    stream.send(bytes_in(text_of(stream)));
    stream.end();
  }
  for (ClientStream& stream : streams)
    CHECK(answers_of(stream) == std::vector<std::string>{text_of(stream)});
}

TEST_CASE("sending waits for credit, and an event loop is notified of it") {
  ScriptedRouter service(echo(2));
  Client client(service.url(), {.unsent = 6});
  (void)client.descriptor();
  ClientStream stream = client.open();
  stream.send(bytes_in("aabbcc"));
  CHECK(std::get<Answered>(*stream.next()).answer.data == "aabb");
  CHECK_FALSE(stream.send_until(bytes_in("dd"), Clock::now() + 5ms));
  service.post([&service] { service.reply(cp::Credit{.stream = 1, .frames = 2}); });
  stream.send(bytes_in("dd"));
  CHECK(client.changed() == std::vector<std::uint64_t>{1});
  CHECK(std::get<Answered>(*stream.next()).answer.data == "cc");
}

TEST_CASE("a service that answers no heartbeat for longer than a client waits is lost") {
  std::latch over(1);
  ScriptedRouter service(echo());
  Client client(service.url(), {.silence = 1s});
  ClientStream stream = client.open();
  service.post([&over] { over.wait(); });
  CHECK_THROWS_AS(stream.next(), ConnectionLost);
  over.count_down();
}

TEST_CASE("a stream that the service refuses or ends has a reason, the others continue") {
  ScriptedRouter service([](ScriptedRouter& router, const cp::ToService& message) {
    const auto* open = std::get_if<cp::Open>(&message);
    if (open && open->id)
      router.reply(cp::Error{.stream = open->stream,
                             .code = "no_room",
                             .message = "come again",
                             .parameter = "pipeline",
                             .retry_after = 2000ms});
    else
      echo()(router, message);
    if (const auto* gap = std::get_if<cp::Gap>(&message))
      router.reply(cp::Error{.stream = gap->stream, .code = "no_worker", .message = "none came"});
  });
  Client client(service.url());
  ClientStream good = client.open(), bad = client.open();
  try {
    (void)client.open({.id = "full"});
    FAIL("it is open");
  } catch (const StreamRefused& refused) {
    CHECK(refused.what() == std::string("refused as no_room: come again (pipeline)"));
    CHECK(refused.code() == "no_room");
    CHECK(refused.parameter() == "pipeline");
    CHECK(refused.retry_after() == 2000ms);
  }
  bad.gap(1);
  CHECK_THROWS_AS(bad.next(), StreamFailed);
  CHECK_THROWS_AS(bad.send(bytes_in("a")), StreamFailed);
  good.send(bytes_in("aa"));
  CHECK(std::get<Answered>(*good.next()).answer.data == "aa");
}

TEST_CASE("a stream with explanations is refused over ZeroMQ, and other streams are not") {
  ScriptedRouter service(echo());
  Client client(service.url());
  try {
    (void)client.open({.explain = true});
    FAIL("it was opened");
  } catch (const StreamRefused& refused) {
    CHECK(refused.what() == "explain: not available over ZeroMQ: use ws://"s);
    CHECK(refused.parameter() == "explain");
  }
  ClientStream stream = client.open();
  stream.end();
  CHECK(stream.next());
}

TEST_CASE("an answer that is a JSON string is received as text") {
  ScriptedRouter service([](ScriptedRouter& router, const cp::ToService& message) {
    echo()(router, message);
    if (!std::holds_alternative<cp::Flush>(message)) return;
    for (const char* json : {R"( "say \"hi\"" )", R"( {"p": 1.50} )"})
      router.reply(cp::Result{.stream = 1, .kind = Answer::Kind::json, .data = bytes_in(json)});
    router.reply(
        cp::Result{.stream = 1, .kind = Answer::Kind::error, .data = bytes_in("worker_failed")});
    router.reply(cp::Result{.stream = 1,
                            .seq = 4,
                            .begin_s = 0.1,
                            .end_s = 0.2,
                            .flags = flag::last,
                            .data = bytes_in("\1")});
  });
  Client client(service.url());
  ClientStream stream = client.open();
  stream.flush();
  const auto next = [&] { return std::get<Answered>(*stream.next()); };
  CHECK(next().answer == Answer{Answer::Kind::text, R"(say "hi")"});
  CHECK(next().answer == Answer{Answer::Kind::json, R"({"p": 1.50})"});
  CHECK(next().answer == Answer{Answer::Kind::error, "worker_failed"});
  CHECK(next() == Answered{.seq = 4,
                           .begin_s = 0.1,
                           .end_s = 0.2,
                           .flags = flag::last,
                           .answer = {Answer::Kind::bytes, "\1"}});
}

TEST_CASE(
    "when the service ends, all streams are lost, and a new stream connects to the next service") {
  std::optional<ScriptedRouter> service(std::in_place, echo());
  const std::uint16_t port = service->port();
  Client client(service->url());
  ClientStream one = client.open(), other = client.open();
  service.reset();
  CHECK_THROWS_AS(one.next(), ConnectionLost);
  CHECK_THROWS_AS(other.next(), ConnectionLost);
  CHECK_THROWS_AS(other.send(bytes_in("aa")), ConnectionLost);
  CHECK_THROWS_AS(client.open(), ConnectionLost);
  service.emplace(echo(), port);
  ClientStream again = client.open();
  again.send(bytes_in("aa"));
  CHECK(std::get<Answered>(*again.next()).answer.data == "aa");
}

TEST_CASE("a service that does not answer, or sends invalid messages, is a lost connection") {
  ScriptedRouter mute([](auto&, const auto&) {});
  Client patient(mute.url(), {.connect = 1s});
  CHECK_THROWS_WITH(patient.open(), Catch::Contains("does not answer"));
  CHECK(mute.next_message() == "1 open pipeline=default resume");
  CHECK(mute.next_message() == "1 end");  // in case the service opens the stream later

  ScriptedRouter nonsense(
      [](ScriptedRouter& router, const auto&) { router.reply_raw("nonsense"); });
  CHECK_THROWS_WITH(Client(nonsense.url()).open(), Catch::Contains("sent an invalid message"));
}

TEST_CASE("a stream whose results are not taken does not send, and the others continue") {
  ScriptedRouter service(echo());
  Client client(service.url(), {.untaken = 256});
  ClientStream lazy = client.open(), keen = client.open();
  for (int i = 0; i < 4; ++i) lazy.send(bytes_in("aa"));
  REQUIRE(await_message(service, "1 frames at 3: aa"));
  keen.send(bytes_in("bb"));
  CHECK(std::get<Answered>(*keen.next()).answer.data == "bb");
  CHECK(service.next_message() == "2 frames at 0: bb");
  lazy.send(bytes_in("cc"));  // the earlier results are not taken yet
  keen.send(bytes_in("dd"));
  CHECK(service.next_message() == "2 frames at 1: dd");
  for (int i = 0; i < 4; ++i) CHECK(std::get<Answered>(*lazy.next()).answer.data == "aa");
  CHECK(std::get<Answered>(*lazy.next()).answer.data == "cc");
}

namespace {

// Counts the events before the stream fails with `slow_reader`.
int results_of_slow(ClientStream& stream) {
  int taken = 0;
  try {
    while (stream.next()) ++taken;
    FAIL("it ended well");
  } catch (const StreamFailed& failed) {
    CHECK(failed.code() == "slow_reader");
  }
  return taken;
}

}  // namespace

TEST_CASE("results that are not taken for too long end their stream over ZeroMQ") {
  ScriptedRouter service(echo());
  Client client(service.url(), {.untaken = 256, .taking = 10ms});
  ClientStream stream = client.open();
  for (int i = 0; i < 4; ++i) stream.send(bytes_in("aa"));
  CHECK(await_message(service, "1 end"));
  CHECK(results_of_slow(stream) == 4);  // 66 bytes each
}

TEST_CASE(
    "messages of a worker that are not taken end their stream over ZeroMQ at four times the "
    "bound") {
  ScriptedRouter service([](ScriptedRouter& router, const cp::ToService& message) {
    echo()(router, message);
    if (!std::holds_alternative<cp::Flush>(message)) return;
    for (int i = 0; i < 20; ++i) router.reply(cp::Message{.stream = 1, .data = bytes_in("aa")});
  });
  Client client(service.url(), {.untaken = 256, .taking = 1h});
  ClientStream stream = client.open();
  stream.flush();
  CHECK(await_message(service, "1 end"));
  CHECK(results_of_slow(stream) == 16);  // 66 bytes each
}

TEST_CASE("a message over ZeroMQ that only a later version knows is ignored") {
  ScriptedRouter service([](ScriptedRouter& router, const cp::ToService& message) {
    echo()(router, message);
    if (!std::holds_alternative<cp::Flush>(message)) return;
    router.reply(cp::Reset{.stream = 1});  // unknown to clients
    router.reply(cp::Result{.stream = 1, .data = bytes_in("aa")});
  });
  Client client(service.url());
  ClientStream stream = client.open();
  stream.flush();
  stream.end();
  CHECK(answers_of(stream).size() == 1);
}

TEST_CASE("a burst of results over ZeroMQ is kept, however large, if the user takes them") {
  ScriptedRouter service([](ScriptedRouter& router, const cp::ToService& message) {
    echo()(router, message);
    if (!std::holds_alternative<cp::Flush>(message)) return;
    for (int i = 0; i < 20; ++i) router.reply(cp::Result{.stream = 1, .data = bytes_in("aa")});
  });
  Client client(service.url(), {.untaken = 256, .taking = 1h});
  ClientStream stream = client.open();
  stream.flush();
  stream.end();
  CHECK(answers_of(stream).size() == 20);  // 66 bytes each
}

TEST_CASE("a stream over ZeroMQ that sends nothing sends keepalives") {
  ScriptedRouter service(echo());
  Client client(service.url(), {.keepalive = 1ms});
  ClientStream stream = client.open();
  for (int i = 0; i < 3; ++i) CHECK(await_message(service, "1 frames at 0: "));
  stream.send(bytes_in("aa"));
  CHECK(await_message(service, "1 frames at 1: "));
}

TEST_CASE("a stream over ZeroMQ that is destroyed ends after all queued input") {
  ScriptedRouter service(echo());
  Client client(service.url());
  {
    ClientStream stream = client.open();
    stream.send(bytes_in("aa"));
  }
  (void)service.next_message();
  CHECK(service.next_message() == "1 frames at 0: aa");
  CHECK(service.next_message() == "1 end");
}

TEST_CASE("destroying a client closes its connection") {
  ScriptedRouter service(echo());
  std::optional<Client> client(service.url());
  ClientStream stream = client->open();
  client.reset();
  CHECK_THROWS_WITH(stream.next(), "the client was closed");
  (void)service.next_message();
  CHECK(service.next_message() == "lost");
}
