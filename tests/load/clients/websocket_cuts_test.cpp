// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "load/clients/websocket_client.h"
#include "load/protocols/millrace_v1.h"
#include "tests/load/recording_sink.h"

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;

namespace {

StreamRequest request_that_resumes() {
  StreamRequest request;
  request.resume = true;
  return request;
}

// A client whose stream resumes, and the other end of its connection.
struct ResumingPair {
  ResumingPair() { connect(); }

  void connect() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    client.emplace(FileDescriptor(ends[0]), nullptr, "GET", *session, scratch);
    service = FileDescriptor(ends[1]);
    REQUIRE(client->turn(false, true, sink));
    REQUIRE(read() == "GET");
  }
  // Sends these bytes to the client and returns the calls of its sink.
  std::string effect_of(std::string_view bytes) {
    REQUIRE(::send(service.get(), bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
    continues = client->turn(true, false, sink);
    return std::exchange(sink.record, {});
  }
  void open() {
    const std::string ready =
        R"({"type":"ready","frame_bytes":1,"keep":400,"frames":0,"commands":0,"resume":"T"})";
    REQUIRE(effect_of("HTTP/1.1 101 Switching Protocols\r\n\r\n").empty());
    REQUIRE(effect_of(std::string{'\x81', static_cast<char>(ready.size())} + ready) == "opened ");
  }
  // What has arrived; the connection has ended if there is no more.
  std::string read() {
    std::string bytes(1 << 16, '\0');
    const auto size = ::recv(service.get(), bytes.data(), bytes.size(), 0);
    ended = size == 0 || (size < 0 && errno == ECONNRESET);
    bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return bytes;
  }

  MillraceV1 protocol{request_that_resumes()};
  std::unique_ptr<ClientSession> session = protocol.session(5, "s");
  WebSocketScratch scratch;
  std::optional<WebSocketClient> client;
  FileDescriptor service;
  RecordingSink sink;
  bool continues = true;
  bool ended = false;
};

const std::string payload(100, 'x');

}  // namespace

TEST_CASE("the stream of a client is open with ready, not with the upgrade") {
  ResumingPair pair;
  pair.effect_of("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  CHECK_FALSE(pair.session->is_open());
  CHECK_FALSE(pair.client->send(bytes_in(payload)));
}

TEST_CASE("a cut at once ends the connection") {
  ResumingPair pair;
  pair.open();
  pair.client->cut({.resets = GENERATE(true, false)});
  CHECK(pair.client->is_lost());
  pair.read();
  CHECK(pair.ended);
}

TEST_CASE("a cut within a packet sends only a part of it, and the session keeps the packet") {
  ResumingPair pair;
  pair.open();
  pair.client->cut({.part = 0.5});
  CHECK_FALSE(pair.client->is_lost());
  CHECK(pair.client->send(bytes_in(payload)));
  CHECK(pair.client->is_lost());
  CHECK(pair.read().size() == (6 + payload.size()) / 2);
  pair.read();
  CHECK(pair.ended);
}

TEST_CASE("a connection that is lost, or closed by the service to move, is resumed") {
  ResumingPair pair;
  pair.open();
  SECTION("lost") {
    pair.service = FileDescriptor();
    CHECK_FALSE(pair.client->turn(true, false, pair.sink));
    CHECK(pair.sink.record.empty());
  }
  SECTION("closed") { CHECK(pair.effect_of("\x88\x02\x03\xf4").empty()); }
  CHECK(pair.client->is_lost());
}

TEST_CASE("a normal close before the end, and an invalid message, break the stream") {
  ResumingPair pair;
  pair.open();
  SECTION("close 1000") {
    CHECK(pair.effect_of("\x88\x02\x03\xe8") == "broken:the service closed the connection: 1000 ");
  }
  SECTION("a message without its number") {
    const std::string result = R"({"type":"result","seq":0,"begin":0,"end":1,"data":1})";
    CHECK(pair.effect_of(std::string{'\x81', static_cast<char>(result.size())} + result) ==
          "broken:invalid message from the service ");
  }
  CHECK_FALSE(pair.continues);
  CHECK_FALSE(pair.client->is_lost());
}

TEST_CASE("a refusal of the next connection is temporary, or breaks the stream") {
  ResumingPair pair;
  pair.open();
  pair.session->next_connection(Time(1h));
  pair.connect();
  SECTION("temporary") {
    CHECK(pair.effect_of("HTTP/1.1 503 Service Unavailable\r\n\r\n").empty());
    CHECK(pair.client->is_lost());
  }
  SECTION("final") {
    CHECK(pair.effect_of("HTTP/1.1 404 Not Found\r\n\r\n") == "broken:not resumed: 404 ");
    CHECK_FALSE(pair.client->is_lost());
  }
  CHECK_FALSE(pair.continues);
}
