// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <catch2/catch.hpp>
#include <future>

#include "client/client.h"
#include "schemas/client_codec.h"
#include "tests/client/scripted_service.h"
#include "tests/client/stream_texts.h"
#include "tests/support/patience.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::literals;
using Answered = client_event::Result;
using Kind = Connection::Kind;

namespace {

std::string result_with(const std::string& answer) {
  return R"({"type":"result","seq":3,"begin":4800,"end":6400,"begin_s":0.3,"end_s":0.4,)"
         R"("flags":["LAST","END"],)" +
         answer + "}";
}

// Answers each message with a result: its number of bytes, such as "4", or its text.
Task<> echo(Connection& connection, std::string target) {
  co_await send_text(connection, ready);
  std::uint64_t frames = 0;
  for (;;) {
    const auto received = co_await connection.receive();
    const auto* message = std::get_if<Connection::Message>(&received);
    if (!message) co_return;
    std::string answer(message->text());
    if (message->kind == Kind::binary) answer = std::to_string(message->bytes.size());
    frames += message->kind == Kind::binary ? message->bytes.size() : 0;
    std::string result = result_with("\"data\":" + answer);
    co_await send_text(connection, std::move(result));
    if (answer != R"({"type":"end"})") continue;
    std::string closed = R"({"type":"closed","frames":)" + std::to_string(frames) +
                         R"(,"chunks":)" + std::to_string(target.size()) + "}";
    co_await send_text(connection, std::move(closed));
  }
}

// A result with an explanation, and one without.
Task<> explain_with_target(Connection& connection, std::string target) {
  co_await send_text(connection, ready);
  std::string result =
      result_with(R"("explain":{"slot":3, "target":")" + target + R"("},"data":{"explain":7})");
  co_await send_text(connection, std::move(result));
  result = result_with(R"("data":{"explain":7})");
  co_await send_text(connection, std::move(result));
}

// Sends each line as a message, and closes the connection.
template <const char* const& lines>
Task<> send_lines(Connection& connection, std::string) {
  std::string_view rest = lines;
  while (!rest.empty()) {
    std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    co_await send_text(connection, std::move(line));
  }
}

}  // namespace

TEST_CASE("a stream is opened, sent and closed") {
  ScriptedService service(&echo);
  Client client(service.url());
  ClientStream stream = client.open({.id = "mic", .rate = 16000});
  CHECK(stream.name() == "mic");
  stream.send(bytes_in("abcd"));
  stream.flush(7);
  stream.reset();
  stream.gap(1600);
  stream.message(R"({"words":["a"]})");
  stream.set(R"({"lang":"de"})");
  stream.end();
  CHECK(answers_of(stream) ==
        std::vector<std::string>{"4", R"({"type":"flush","mark":7})", R"({"type":"reset"})",
                                 R"({"type":"gap","frames":1600})",
                                 R"({"type":"message","data":{"words":["a"]}})",
                                 R"({"type":"set","options":{"lang":"de"}})", R"({"type":"end"})"});
  CHECK(stream.over());
}

TEST_CASE("a stream's first and last events are its name and its totals") {
  ScriptedService service(&echo);
  Client client(service.url() + "/v1/stream");
  ClientStream stream = client.start({.id = "mic"});
  stream.send(bytes_in("abcd"));
  CHECK(stream.next() == ClientEvent(client_event::Opened{"mic", "default", 0}));
  CHECK(std::get<Answered>(*stream.next()) == Answered{.seq = 3,
                                                       .begin = 4800,
                                                       .end = 6400,
                                                       .begin_s = 0.3,
                                                       .end_s = 0.4,
                                                       .flags = flag::last | flag::end,
                                                       .answer = {Answer::Kind::json, "4"}});
  stream.end();
  (void)stream.next();
  const std::string target = "/v1/stream?pipeline=default&id=mic&resume=1";
  CHECK(stream.next() == ClientEvent(client_event::Closed{4, target.size()}));
  CHECK_FALSE(stream.next());
}

TEST_CASE("a long input reaches the service in messages below its limit") {
  ScriptedService service(&echo);
  Client client(service.url());
  ClientStream stream = client.open();
  stream.send(bytes_in(std::string(70'000, 'x')));
  stream.end();
  CHECK(answers_of(stream) ==
        std::vector<std::string>{"32768", "32768", "4464", R"({"type":"end"})"});
}

TEST_CASE("a stream of Opus sends each packet as one message") {
  ScriptedService service(&echo);
  Client client(service.url());
  ClientStream stream = client.open({.format = "opus"});
  for (const std::size_t bytes : {60'000, 1, 200}) stream.send(bytes_in(std::string(bytes, 'x')));
  CHECK_THROWS_AS(stream.send(Bytes()), std::invalid_argument);
  stream.end();
  CHECK(answers_of(stream) == std::vector<std::string>{"60000", "1", "200", R"({"type":"end"})"});
}

TEST_CASE("each stream of a client has its own connection") {
  ScriptedService service(&echo);
  Client client(service.url());
  ClientStream one = client.open(), other = client.open();
  one.send(bytes_in("a"));
  other.send(bytes_in("bc"));
  one.end();
  other.end();
  CHECK(answers_of(other).front() == "2");
  CHECK(answers_of(one).front() == "1");
  CHECK(one.number() != other.number());
}

TEST_CASE("answers are JSON values as they were written, strings, or errors") {
  static const std::string said =
      ready + "\n" + result_with(R"("data": {"p": 1.50, "q":[ 1e2,"]}"]} )") + "\n" +
      result_with(R"("data":"say \"hi\"")") + "\n" + result_with(R"("error":"worker_failed")");
  static const char* const lines = said.c_str();
  ScriptedService service(&send_lines<lines>);
  Client client(service.url());
  ClientStream stream = client.open();
  const auto answer = [&] { return std::get<Answered>(*stream.next()).answer; };
  CHECK(answer() == Answer{Answer::Kind::json, R"({"p": 1.50, "q":[ 1e2,"]}"]})"});
  CHECK(answer() == Answer{Answer::Kind::text, R"(say "hi")"});
  CHECK(answer() == Answer{Answer::Kind::error, "worker_failed"});
}

TEST_CASE("a stream that asks for explanations has one with each result") {
  ScriptedService service(&explain_with_target);
  Client client(service.url());
  ClientStream stream = client.open({.explain = true});
  const auto explain = [&] { return std::get<Answered>(*stream.next()).explain; };
  CHECK(explain() == R"({"slot":3, "target":"/v1/stream?pipeline=default&explain=1&resume=1"})");
  CHECK(explain().empty());
}

TEST_CASE("an answer of bytes is received as a result, after a message of a later version") {
  ScriptedService service([](Connection& connection, std::string) -> Task<> {
    co_await send_text(connection, ready);
    client_protocol::Encoder encoder;
    const Bytes unknown = encoder.encode(client_protocol::Reset{});  // unknown to clients
    const std::string later(reinterpret_cast<const char*>(unknown.data()), unknown.size());
    co_await connection.send(Kind::binary, later);
    const client_protocol::Result result{
        .seq = 9, .end = 1600, .end_s = 0.1, .data = bytes_in("\1\2")};
    const Bytes bytes = encoder.encode(result);
    const std::string_view message(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    co_await connection.send(Kind::binary, message);
    co_await await_end(connection);
  });
  Client client(service.url());
  ClientStream stream = client.open();
  CHECK(std::get<Answered>(*stream.next()) ==
        Answered{.seq = 9, .end = 1600, .end_s = 0.1, .answer = {Answer::Kind::bytes, "\1\2"}});
}

TEST_CASE("messages that are not results become events") {
  static const std::string said =
      ready + "\n" + R"({"type":"rejected","code":"values","message":"half a frame","frames":3})" +
      "\n" + R"({"type":"warning","code":"values","message":"too loud"})" + "\n" +
      R"({"type":"news"})" + "\n" + R"({"type":"flushed","mark":7})" + "\n" +
      R"({"type":"goaway","retry_after_ms":1000})" + "\n" +
      R"({"type":"error","code":"no_worker","message":"none came"})";
  static const char* const lines = said.c_str();
  ScriptedService service(&send_lines<lines>);
  Client client(service.url());
  ClientStream stream = client.open();
  CHECK(stream.next() == ClientEvent(client_event::Rejected{"values", "half a frame", 3}));
  CHECK(stream.next() == ClientEvent(client_event::Warned{"values", "too loud"}));
  CHECK(stream.next() == ClientEvent(client_event::Flushed{7}));
  CHECK(stream.next() == ClientEvent(client_event::Goaway{1000ms}));
  try {
    (void)stream.next();
    FAIL("it goes on");
  } catch (const StreamFailed& failed) {
    CHECK(failed.code() == "no_worker");
    CHECK(failed.what() == std::string("no_worker: none came"));
  }
}

TEST_CASE("a refusal has a reason, and a time to retry") {
  ScriptedService service(std::string(
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 75\r\n\r\n"
      R"({"error":{"code":"stopping","parameter":"pipeline","message":"come again"}})"));
  Client client(service.url());
  try {
    (void)client.open();
    FAIL("it is open");
  } catch (const StreamRefused& refused) {
    CHECK(refused.what() == std::string("refused as stopping: come again (pipeline)"));
    CHECK(refused.code() == "stopping");
    CHECK(refused.parameter() == "pipeline");
    CHECK(refused.retry_after() == 2000ms);
  }
  const ScriptedService plain(std::string("HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n"));
  CHECK_THROWS_WITH(Client(plain.url()).open(), "refused as no_room: HTTP 503");
  const ScriptedService other(std::string("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
  CHECK_THROWS_WITH(Client(other.url()).open(), "refused as schema: HTTP 404");
}

TEST_CASE(
    "a service that is absent, does not answer or sends invalid messages is a lost connection") {
  std::string gone;
  {
    ScriptedService service(&echo);
    gone = service.url();
  }
  CHECK_THROWS_AS(Client(gone).open(), ConnectionLost);
  const ScriptedService mail(std::string("220 mail"));
  CHECK_THROWS_AS(Client(mail.url()).open(), ConnectionLost);
  const ScriptedService zeromq("\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL"s);
  CHECK_THROWS_WITH(Client(zeromq.url()).open(),
                    Catch::Contains("use a URL that begins with tcp://"));

  ScriptedService mute([](Connection& connection, std::string) { return await_end(connection); });
  Client patient(mute.url());
  const ClientStream waiting = patient.start();  // fails together with its client

  ScriptedService nonsense([](Connection& connection, std::string) -> Task<> {
    co_await send_text(connection, "[]");
    co_await await_end(connection);
  });
  CHECK_THROWS_WITH(Client(nonsense.url()).open(), Catch::Contains("sent an invalid message"));
}

TEST_CASE("a lost connection fails sending and receiving") {
  static const char* const lines = ready.c_str();
  ScriptedService service(&send_lines<lines>);
  Client client(service.url());
  ClientStream stream = client.open();
  CHECK_THROWS_AS(stream.next(), ConnectionLost);
  CHECK_THROWS_AS(stream.next(), ConnectionLost);
  CHECK_THROWS_AS(stream.send(bytes_in("a")), ConnectionLost);
}

TEST_CASE("invalid URLs and commands are refused at once") {
  for (const char* bad : {"", "http://here", "ws://", "ws://here:port", "ws://here/v2"})
    CHECK_THROWS_AS(Client(bad), std::invalid_argument);
  ScriptedService service(&echo);
  Client client(service.url());
  ClientStream stream = client.open();
  CHECK_THROWS_AS(stream.gap(0), std::invalid_argument);
  CHECK_THROWS_AS(stream.flush(std::uint64_t{1} << 53), std::invalid_argument);
  CHECK_THROWS_AS(stream.message("{"), std::invalid_argument);
  CHECK_THROWS_AS(stream.set("[]"), std::invalid_argument);
}
