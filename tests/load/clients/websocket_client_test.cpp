// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_client.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "load/protocols/millrace_v1.h"
#include "tests/load/recording_sink.h"

using namespace millrace;
using namespace millrace::load;

namespace {

// A client and the other end of its connection.
struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client.emplace(FileDescriptor(ends[0]), nullptr, "GET / HTTP/1.1\r\n\r\n", *session, scratch);
    service = FileDescriptor(ends[1]);
  }

  bool turn(bool readable = true) { return client->turn(readable, !readable, sink); }
  // Sends these bytes to the client and returns the calls of its sink.
  std::string effect_of(std::string_view bytes) {
    REQUIRE(::send(service.get(), bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
    continues = turn();
    return std::exchange(sink.record, {});
  }
  std::string read() {
    std::string bytes(1 << 16, '\0');
    const auto size = ::recv(service.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return bytes;
  }
  void open() {
    REQUIRE(turn(false));
    read();
    REQUIRE(effect_of("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n") ==
            "opened ");
  }

  MillraceV1 protocol{{}};
  std::unique_ptr<ClientSession> session = protocol.session(5, "s");
  WebSocketScratch scratch;
  std::optional<WebSocketClient> client;
  FileDescriptor service;
  RecordingSink sink;
  bool continues = true;
};

std::string text(std::string_view payload) {
  return std::string{'\x81', static_cast<char>(payload.size())} + std::string(payload);
}

constexpr std::string_view result = R"({"type":"result","seq":4,"begin":0,"end":1600,"data":1})";
constexpr std::string_view closed = R"({"type":"closed","frames":1600,"chunks":1})";

}  // namespace

TEST_CASE("the upgrade is sent after the connection, and its answer is read") {
  Pair pair;
  CHECK(pair.client->waits_to_write());
  REQUIRE(pair.turn(false));
  CHECK_FALSE(pair.client->waits_to_write());
  CHECK(pair.read() == "GET / HTTP/1.1\r\n\r\n");
  CHECK(pair.effect_of("HTTP/1.1 101 Switch").empty());
  CHECK(pair.effect_of("ing Protocols\r\n\r\n") == "opened ");
}

TEST_CASE("a refusal has the HTTP status as its reason") {
  Pair pair;
  REQUIRE(pair.turn(false));
  CHECK(pair.effect_of("HTTP/1.1 503 Service Unavailable\r\n\r\n{}") == "refused:503 ");
  CHECK_FALSE(pair.continues);
}

TEST_CASE("an answer that is not HTTP is refused as invalid, however short") {
  Pair pair;
  REQUIRE(pair.turn(false));
  CHECK(pair.effect_of("x\r\n\r\n") == "refused:invalid answer to the upgrade ");
}

TEST_CASE("messages are read however they are split") {
  Pair pair;
  pair.open();
  const std::string both = text(result) + text(R"({"type":"rejected","code":"format","frames":7})");
  CHECK(pair.effect_of(both) == "result:4 rejected:7 ");
  for (const char byte : text(result)) {
    const std::string calls = pair.effect_of({&byte, 1});
    if (!calls.empty()) CHECK(calls == "result:4 ");
  }
}

TEST_CASE("a ping is answered, masked") {
  Pair pair;
  pair.open();
  CHECK(pair.effect_of("\x89\x01x").empty());
  const std::string pong = pair.read();
  REQUIRE(pong.size() == 7);
  CHECK(pong[0] == '\x8a');
  CHECK((pong[6] ^ pong[2]) == 'x');
}

TEST_CASE("a close after the message closed is a clean end") {
  Pair pair;
  pair.open();
  CHECK(pair.effect_of(text(closed)).empty());
  CHECK(pair.effect_of("\x88\x02\x03\xe8") == "closed:1600/1 ");
  CHECK_FALSE(pair.continues);
}

TEST_CASE("any other end is broken, with the error code of the service") {
  SECTION("a close") {
    Pair pair;
    pair.open();
    CHECK(pair.effect_of(text(R"({"type":"error","code":"no_worker","message":"m"})") +
                         "\x88\x02\x03\xe8") == "broken:no_worker ");
  }
  SECTION("a close with a code and a reason") {
    Pair pair;
    pair.open();
    CHECK(pair.effect_of("\x88\x0a\x03\xf3NET-0001") ==
          "broken:the service closed the connection: 1011 NET-0001 ");
  }
  SECTION("a lost connection") {
    Pair pair;
    pair.open();
    pair.service = FileDescriptor();
    CHECK_FALSE(pair.turn());
    CHECK(pair.sink.record == "broken:the service disconnected ");
  }
  SECTION("an invalid message") {
    Pair pair;
    pair.open();
    CHECK(pair.effect_of("\xc1\x01x") == "broken:invalid message from the service ");
    CHECK_FALSE(pair.continues);
  }
}

TEST_CASE("unsent bytes are kept, and the client is writable once they are sent") {
  Pair pair;
  pair.open();
  const std::vector<std::byte> packet(60'000);
  std::size_t sent = 0;
  while (pair.client->send(packet)) ++sent;
  CHECK(pair.client->waits_to_write());
  std::size_t read = 0;
  while (pair.client->waits_to_write()) {
    for (std::string some = pair.read(); !some.empty(); some = pair.read()) read += some.size();
    REQUIRE(pair.turn(false));
  }
  CHECK(pair.sink.record == "writable ");
  for (std::string some = pair.read(); !some.empty(); some = pair.read()) read += some.size();
  CHECK(read == sent * (packet.size() + 8));
}
