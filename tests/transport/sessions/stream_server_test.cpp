// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/stream_server.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "tests/transport/sessions/server_fixture.h"

using namespace millrace;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

// A masked frame, with a mask of zeros.
std::string frame(unsigned char head, std::string payload) {
  return std::string{
             static_cast<char>(head), static_cast<char>(0x80 | payload.size()), 0, 0, 0, 0} +
         payload;
}

const std::string close_normal = frame(0x88, "\x03\xe8");

// The code of the close frame that the answer ends with.
int close_code_in(const std::string& reply) {
  const auto at = reply.rfind('\x88');
  if (at == std::string::npos || at + 4 > reply.size()) return 0;
  return static_cast<unsigned char>(reply[at + 2]) * 256 +
         static_cast<unsigned char>(reply[at + 3]);
}

}  // namespace

TEST_CASE_METHOD(ServerFixture, "a client sends a stream and receives its results") {
  const auto reply = send(request("/v1/stream?id=kitchen") + frame(0x82, "abcd") +
                          frame(0x81, R"({"type":"flush","mark":7})") +
                          frame(0x81, R"({"type":"end"})") + close_normal);
  CHECK_THAT(reply, StartsWith("HTTP/1.1 101 ") &&
                        Contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") &&
                        !Contains("Sec-WebSocket-Protocol") && !Contains("Extensions") &&
                        Contains(R"({"type":"ready","stream":"kitchen","pipeline":"default",)"
                                 R"("frames":0})") &&
                        Contains(R"("seq":0,"begin":0,"end":4,)") &&
                        Contains(R"({"type":"flushed","mark":7})") &&
                        Contains(R"({"type":"closed","frames":4,"chunks":1})"));
  CHECK(close_code_in(reply) == 1000);
  CHECK(eventually([&] { return admission.lost == std::vector<std::string>{"clean"}; }));
  CHECK(stats.opened.value() == 1);
  CHECK(stats.closed[Closing::client].value() == 1);
}

TEST_CASE_METHOD(ServerFixture,
                 "the subprotocol millrace.v1 is echoed, and no extension is negotiated") {
  const auto reply = send(request("/v1/stream",
                                  "Sec-WebSocket-Protocol: chat, millrace.v1\r\n"
                                  "Sec-WebSocket-Extensions: permessage-deflate\r\n") +
                          close_normal);
  CHECK_THAT(reply, Contains("\r\nSec-WebSocket-Protocol: millrace.v1\r\n"));
  CHECK_THAT(reply, !Contains("Extensions"));
}

TEST_CASE_METHOD(ServerFixture, "a wrong upgrade is refused with a status and a reason") {
  CHECK_THAT(
      send(request("/v1/stream?rate=fast")),
      StartsWith("HTTP/1.1 400 ") && Contains("Content-Type: application/json\r\n") &&
          EndsWith(
              R"({"error":{"code":"schema","parameter":"rate","message":"must be a number"}})"));
  CHECK_THAT(send(request("/v1/stream?pipeline=none")),
             StartsWith("HTTP/1.1 404 ") && Contains(R"("parameter":"pipeline")"));
  CHECK_THAT(send(request("/")), StartsWith("HTTP/1.1 404 ") && Contains(R"("code":"schema")"));
  CHECK_THAT(send(request("/v1/stream?x=" + std::string(4096, 'y'))), StartsWith("HTTP/1.1 414 "));
  CHECK_THAT(send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"),
             StartsWith("HTTP/1.1 426 ") && Contains("Sec-WebSocket-Version: 13\r\n"));
  CHECK_THAT(send(request("/v1/stream", "Sec-WebSocket-Protocol: chat\r\n")),
             StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(send(request("/v1/stream?id=full")),
             StartsWith("HTTP/1.1 503 ") && Contains("Retry-After: 2\r\n"));
  CHECK(stats.refused[Refusal::parameter].value() == 4);
  CHECK(stats.refused[Refusal::handshake].value() == 1);  // a GET without an upgrade only asks
  CHECK(stats.refused[Refusal::no_room].value() == 1);
  CHECK(stats.connections.value() == 0);
  CHECK(admission.lost.empty());
}

TEST_CASE_METHOD(ServerFixture, "bytes that are not HTTP, and too long headers, are refused") {
  const std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  CHECK_THAT(send(hello + "\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(send(request("/v1/stream", "Content-Length: 5\r\n") + "hello"),
             StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(send(request("/v1/stream", "Content-Length: 0\r\nContent-Length: 0\r\n")),
             StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(send(request("/v1/stream", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n") +
                  "0\r\n\r\n"),
             StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(send(request("/v1/stream", "A: " + std::string(32768, 'a') + "\r\n")),
             StartsWith("HTTP/1.1 431 "));
  CHECK_THAT(send("GET /" + std::string(33000, 'a')), StartsWith("HTTP/1.1 431 "));
  std::string many;
  for (int i = 0; i < 60; ++i) many += "A: a\r\n";
  CHECK_THAT(send(request("/v1/stream", many)), StartsWith("HTTP/1.1 431 "));
  CHECK(stats.refused[Refusal::handshake].value() == 8);
}

TEST_CASE_METHOD(ServerFixture, "invalid frames are closed with their code") {
  const auto code = [this](std::string frames) {
    return close_code_in(send(request("/v1/stream") + frames));
  };
  CHECK(code(std::string("\x82\x01x", 3)) == 1002);                          // not masked
  CHECK(code(frame(0xc2, "x")) == 1002);                                     // reserved bit
  CHECK(code(frame(0x83, "x")) == 1002);                                     // reserved opcode
  CHECK(code(frame(0x80, "x")) == 1002);                                     // continues nothing
  CHECK(code(frame(0x02, "x") + frame(0x82, "x")) == 1002);                  // interrupts itself
  CHECK(code(frame(0x09, "x")) == 1002);                                     // ping in pieces
  CHECK(code(frame(0x88, "x")) == 1002);                                     // half a close code
  CHECK(code(frame(0x88, "\x03\xe7")) == 1002);                              // 999
  CHECK(code(frame(0x81, "\xff")) == 1007);                                  // no UTF-8
  CHECK(code(frame(0x01, "\xe2\x82") + frame(0x80, "")) == 1007);            // half a character
  CHECK(code(std::string("\x82\xff\0\0\0\1\0\0\0\0\0\0\0\0", 14)) == 1009);  // 4 GiB
  CHECK(eventually([&] { return stats.connections.value() == 0; }));
}

TEST_CASE_METHOD(ServerFixture, "a client that vanishes is detected at once") {
  const auto vanish = [](Tcp::endpoint endpoint) -> Task<bool> {
    Socket socket = co_await connect_to(endpoint);
    const std::string bytes = request("/v1/stream") + frame(0x82, "abcd") + "\x82";
    co_await net::async_write(socket, net::buffer(bytes), no_throw);
    co_return true;
  };
  run(context, vanish(server.endpoint()));
  CHECK(eventually([&] { return admission.lost == std::vector<std::string>{"lost"}; }));
}

TEST_CASE_METHOD(ServerFixture, "a connection without a complete upgrade is closed in time") {
  using namespace std::chrono_literals;
  std::string first, second;
  SECTION("it sends nothing") {}
  SECTION("it sends a part") { first = "GET /v1/stream HTT"; }
  SECTION("it sends byte after byte") { first = "G", second = "E"; }
  const Time before = Clock::now();
  Socket client(context);
  client.connect(server.endpoint());
  REQUIRE(eventually([&] { return scope.connections() == 1; }));
  const Time accepted = Clock::now();
  deliver(client, first);
  scope.sweep(before + 9s);
  deliver(client, second);
  CHECK(scope.connections() == 1);
  scope.sweep(accepted + 10s + 1ms);  // no byte has extended the time
  CHECK(run(context, read_all(client)) == "");
  CHECK(eventually([&] { return stats.refused[Refusal::handshake].value() == 1; }));
}

TEST_CASE_METHOD(
    ServerFixture,
    "a client beyond the limit of sockets receives 503, and earlier clients continue") {
  gate.sockets.set_limit(1);
  Socket first(context);
  first.connect(server.endpoint());
  REQUIRE(eventually([&] { return gate.sockets.taken() == 1; }));
  Socket second(context);
  second.connect(server.endpoint());
  CHECK_THAT(run(context, read_all(second)), StartsWith("HTTP/1.1 503 ") &&
                                                 Contains("\r\nRetry-After: ") &&
                                                 Contains(R"("code":"no_room")"));
  CHECK(stats.refused[Refusal::limit_global].value() == 1);
  first.close();
  CHECK(eventually([&] { return gate.sockets.taken() == 0; }));
  CHECK_THAT(send(request("/v1/stream") + close_normal), StartsWith("HTTP/1.1 101 "));
}

TEST_CASE_METHOD(ServerFixture,
                 "while memory is short, a new connection is refused before anything is read") {
  gate.memory_short = true;
  Socket silent(context);
  silent.connect(server.endpoint());
  CHECK_THAT(run(context, read_all(silent)), StartsWith("HTTP/1.1 503 ") &&
                                                 Contains("\r\nRetry-After: ") &&
                                                 Contains("short of memory"));
  CHECK(stats.refused[Refusal::overload].value() == 1);
  CHECK(scope.connections() == 0);
  gate.memory_short = false;
  CHECK_THAT(send(request("/v1/stream") + close_normal), StartsWith("HTTP/1.1 101 "));
}

TEST_CASE_METHOD(ServerFixture, "on a loopback address only loopback hosts are answered") {
  const auto status = [this](const std::string& host) {
    std::string bytes = request("/v1/stream");
    bytes.replace(bytes.find("localhost"), 9, host);
    return send(bytes + close_normal).substr(9, 3);
  };
  for (const char* host : {"localhost:8080", "LOCALHOST", "127.0.0.1", "127.1.2.3:80", "[::1]:80"})
    CHECK(status(host) == "101");
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
        "localhost:80:80", "[::2]", "0.0.0.0", "localhost@evil.example", ""})
    CHECK(status(host) == "421");
}

TEST_CASE_METHOD(ServerFixture, "a page opens a stream only if its origin is listed") {
  const auto status = [this](const std::string& fields) {
    return send(request("/v1/stream", fields) + close_normal).substr(9, 3);
  };
  CHECK(status("") == "101");
  CHECK(status("Origin: https://good.example\r\n") == "101");
  for (const char* origin :
       {"null", "https://good.example.evil", "http://good.example", "", "https://GOOD.example",
        "https://good.example:444", "https://evil.example"})
    CHECK(status("Origin: " + std::string(origin) + "\r\n") == "403");
  CHECK(status("Origin: https://good.example\r\nOrigin: null\r\n") == "403");
  CHECK(stats.refused[Refusal::handshake].value() == 8);
}

TEST_CASE_METHOD(ServerFixture, "a path is compared without normalization") {
  for (const char* path :
       {"/", "/v1/stream/", "/v1/../v1/stream", "/v1/%73tream", "/v1/streams", "/v1/stream#x"})
    CHECK_THAT(send(request(path)),
               StartsWith("HTTP/1.1 404 ") && Contains("streams are at /v1/stream\""));
}

TEST_CASE_METHOD(ServerFixture, "the path of a request chooses among the protocols of a listener") {
  struct Refusing final : WebSocketProtocol {
    std::string_view path() const override { return "/v1/other"; }
    Result<Accepted, RequestError> accept(const HttpQuery&, SessionScope&,
                                          const ClientIdentity&) override {
      return RequestError{.status = 409, .message = "asked"};
    }
  } other;
  StreamServer both(scope, loopback(context), {&protocol, &other}, gate);
  both.start();
  const auto answer = [&](std::string target) {
    return run(context, exchange(both.endpoint(), request(std::move(target)) + close_normal));
  };
  CHECK_THAT(answer("/v1/stream?id=a"), StartsWith("HTTP/1.1 101 "));
  CHECK_THAT(answer("/v1/other?id=a"), StartsWith("HTTP/1.1 409 "));
  CHECK_THAT(answer("/v1/"), Contains("streams are at /v1/stream, /v1/other\""));
  both.stop_accepting();
  context.restart();
  context.poll();
}

TEST_CASE_METHOD(ServerFixture,
                 "an absolute target is reduced to its path, and its host is checked") {
  CHECK_THAT(send(request("http://localhost:8080/v1/stream?id=a") + close_normal),
             StartsWith("HTTP/1.1 101 ") && Contains(R"("stream":"a")"));
  CHECK_THAT(send(request("http://evil.example/v1/stream")), StartsWith("HTTP/1.1 421 "));
  CHECK_THAT(send(request("HTTPS://[::1]")), StartsWith("HTTP/1.1 404 "));
}

TEST_CASE_METHOD(ServerFixture, "a refusal is reported with the address of its peer") {
  std::vector<std::string> reports;
  scope.report_refused([&](std::string_view peer, std::string_view why) {
    reports.push_back(std::string(peer.substr(0, peer.find(':'))).append(" ").append(why));
  });
  (void)send(request("/v1/stream?rate=fast"));
  (void)send(request("/v1/stream?id=full"));  // the log has it already
  (void)send("hello\r\n\r\n");
  CHECK(reports ==
        std::vector<std::string>{"127.0.0.1 must be a number",
                                 "127.0.0.1 must be a whole HTTP request without a body"});
  CHECK(stats.refused[Refusal::no_room].value() == 1);
}

TEST_CASE_METHOD(ServerFixture, "a session scope checks its time limits by itself") {
  std::string report;
  scope.report_refused([&](std::string_view, std::string_view why) { report = why; });
  limits.handshake = std::chrono::milliseconds(0);
  Socket silent(context);
  silent.connect(server.endpoint());
  CHECK(run(context, read_all(silent)).empty());
  CHECK(stats.refused[Refusal::handshake].value() == 1);
  CHECK(report == "the upgrade was not finished in time");
}

TEST_CASE_METHOD(ServerFixture, "the thread does other work between two requests of a flood") {
  std::vector<Socket> clients;
  for (int i = 0; i < 5; ++i) clients.emplace_back(context).connect(server.endpoint());
  REQUIRE(eventually([&] { return scope.connections() == clients.size(); }));
  for (Socket& client : clients) net::write(client, net::buffer(request("/v1/stream")));
  std::vector<std::size_t> opened;  // since the work before
  std::size_t last = 0;
  std::function<void()> work = [&] {
    opened.push_back(admission.requests.size() - std::exchange(last, admission.requests.size()));
    if (last < clients.size()) net::post(context, [&] { work(); });
  };
  net::post(context, [&] { work(); });
  REQUIRE(eventually([&] { return last == clients.size(); }));
  CHECK(std::ranges::max(opened) == 1);
}

TEST_CASE_METHOD(ServerFixture, "a client that connects during a drain receives 503") {
  scope.drain();
  CHECK_THAT(send(request("/v1/stream")),
             StartsWith("HTTP/1.1 503 ") && Contains("Retry-After: ") && Contains("stopping"));
}

TEST_CASE_METHOD(ServerFixture, "a drain before the upgrade is reported as such, not as late") {
  std::string report;
  scope.report_refused([&](std::string_view, std::string_view why) { report = why; });
  Socket silent(context);
  silent.connect(server.endpoint());
  deliver(silent, "GET /v1/stream HTTP/1.1\r\n");
  scope.drain();
  CHECK(run(context, read_all(silent)).empty());
  CHECK(report == "the service is stopping");
}

TEST_CASE_METHOD(ServerFixture, "a client that is being closed is closed, whatever it sends") {
  const std::string sent = GENERATE(as<std::string>(), std::string("\xff\xff\xff\xff"),  // no UTF-8
                                    "true" + frame(0x88, "\x03\xe8"), "true" + frame(0x89, "ping"),
                                    "true" + std::string("\x82\x01x", 3), "", "t");
  Socket client(context);
  client.connect(server.endpoint());
  deliver(client, request("/v1/stream"));
  deliver(client, frame(0x81, "true").substr(0, 6));
  scope.sweep(Clock::now() + std::chrono::seconds(6));
  REQUIRE(admission.lost == std::vector<std::string>{"idle"});
  deliver(client, sent);
  scope.sweep(Clock::now() + std::chrono::seconds(12));
  CHECK(eventually([&] { return stats.connections.value() == 0; }));
  CHECK(stats.closed[Closing::idle].value() == 1);
}

TEST_CASE_METHOD(ServerFixture,
                 "a drain closes silent connections, also one that was just accepted") {
  Socket silent(context);
  silent.connect(server.endpoint());
  const bool accepted = GENERATE(true, false);
  if (accepted) REQUIRE(eventually([&] { return scope.connections() == 1; }));
  scope.drain();
  CHECK(run(context, read_all(silent)).empty() == accepted);  // the other one receives 503
  CHECK(stats.refused[accepted ? Refusal::handshake : Refusal::draining].value() == 1);
}

TEST_CASE_METHOD(ServerFixture, "stopping the scope ends every connection") {
  Socket silent(context);
  silent.connect(server.endpoint());
  Socket client(context);
  client.connect(server.endpoint());
  net::write(client, net::buffer(request("/v1/stream")));
  REQUIRE(eventually([&] { return stats.connections.value() == 1; }));
  server.stop_accepting();
  scope.stop();
  CHECK(run(context, joined()));
  CHECK(scope.connections() == 0);
}
