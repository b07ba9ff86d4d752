// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_client.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace millrace;
using namespace millrace::load;

namespace {

struct Heard final : ClientSink {
  void opened(std::uint32_t, Time) override { said += "opened "; }
  void refused(std::uint32_t, std::string_view why, Time) override {
    said += "refused:" + std::string(why) + " ";
  }
  void has_room(std::uint32_t) override { said += "room "; }
  void told(std::uint32_t, const Told& told, Time) override {
    said += "told:" + std::to_string(told.seq) + " ";
  }
  void rejected(std::uint32_t, std::uint64_t frames) override {
    said += "rejected:" + std::to_string(frames) + " ";
  }
  void closed(std::uint32_t, std::uint64_t frames, std::uint64_t rows, Time) override {
    said += "closed:" + std::to_string(frames) + "/" + std::to_string(rows) + " ";
  }
  void broken(std::uint32_t, std::string_view why, Time) override {
    said += "broken:" + std::string(why) + " ";
  }
  std::string said;
};

// A client whose service is the test.
struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client.emplace(FileDescriptor(ends[0]), "GET / HTTP/1.1\r\n\r\n", 5, scratch);
    service = FileDescriptor(ends[1]);
  }

  bool turn(bool readable = true) { return client->turn(readable, !readable, heard); }
  // What the client hears of these bytes.
  std::string says(std::string_view bytes) {
    REQUIRE(::send(service.get(), bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
    goes_on = turn();
    return std::exchange(heard.said, {});
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
    REQUIRE(says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n") == "opened ");
  }

  WebSocketScratch scratch;
  std::optional<WebSocketClient> client;
  FileDescriptor service;
  Heard heard;
  bool goes_on = true;
};

std::string text(std::string_view payload) {
  return std::string{'\x81', static_cast<char>(payload.size())} + std::string(payload);
}

constexpr std::string_view result = R"({"type":"result","seq":4,"begin":0,"end":1600,"data":1})";
constexpr std::string_view closed = R"({"type":"closed","frames":1600,"chunks":1})";

}  // namespace

TEST_CASE("the upgrade is sent once it is connected, and answered") {
  Pair pair;
  CHECK(pair.client->waits_to_write());
  REQUIRE(pair.turn(false));
  CHECK_FALSE(pair.client->waits_to_write());
  CHECK(pair.read() == "GET / HTTP/1.1\r\n\r\n");
  CHECK(pair.says("HTTP/1.1 101 Switch").empty());
  CHECK(pair.says("ing Protocols\r\n\r\n") == "opened ");
}

TEST_CASE("a refusal is told by its status") {
  Pair pair;
  REQUIRE(pair.turn(false));
  CHECK(pair.says("HTTP/1.1 503 Service Unavailable\r\n\r\n{}") == "refused:503 ");
  CHECK_FALSE(pair.goes_on);
}

TEST_CASE("an answer that is no HTTP is told so, however short") {
  Pair pair;
  REQUIRE(pair.turn(false));
  CHECK(pair.says("x\r\n\r\n") == "refused:what it answered is not the protocol ");
}

TEST_CASE("messages are told however they are split") {
  Pair pair;
  pair.open();
  const std::string both = text(result) + text(R"({"type":"rejected","code":"format","frames":7})");
  CHECK(pair.says(both) == "told:4 rejected:7 ");
  for (const char byte : text(result)) {
    const std::string heard = pair.says({&byte, 1});
    if (!heard.empty()) CHECK(heard == "told:4 ");
  }
}

TEST_CASE("a ping is answered, masked") {
  Pair pair;
  pair.open();
  CHECK(pair.says("\x89\x01x").empty());
  const std::string pong = pair.read();
  REQUIRE(pong.size() == 7);
  CHECK(pong[0] == '\x8a');
  CHECK((pong[6] ^ pong[2]) == 'x');
}

TEST_CASE("after closed, a close ends it well") {
  Pair pair;
  pair.open();
  CHECK(pair.says(text(closed)).empty());
  CHECK(pair.says("\x88\x02\x03\xe8") == "closed:1600/1 ");
  CHECK_FALSE(pair.goes_on);
}

TEST_CASE("any other end breaks it, and says what the service said") {
  SECTION("a close") {
    Pair pair;
    pair.open();
    CHECK(pair.says(text(R"({"type":"error","code":"no_worker","message":"m"})") +
                    "\x88\x02\x03\xe8") == "broken:no_worker ");
  }
  SECTION("nothing at all") {
    Pair pair;
    pair.open();
    pair.service = FileDescriptor();
    CHECK_FALSE(pair.turn());
    CHECK(pair.heard.said == "broken:it hung up ");
  }
  SECTION("what is not the protocol") {
    Pair pair;
    pair.open();
    CHECK(pair.says("\xc1\x01x") == "broken:what it sent is not the protocol ");
    CHECK_FALSE(pair.goes_on);
  }
}

TEST_CASE("what the socket does not take is kept, and room is told once it is gone") {
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
  CHECK(pair.heard.said == "room ");
  for (std::string some = pair.read(); !some.empty(); some = pair.read()) read += some.size();
  CHECK(read == sent * (packet.size() + 8));
}
