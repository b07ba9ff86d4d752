// SPDX-License-Identifier: Apache-2.0
// The handshake of ZMTP: which peers are refused, and what is different for peers of ZMTP 3.0.
#include <catch2/catch.hpp>
#include <chrono>
#include <span>
#include <string>

#include "tests/transport/zeromq/fixture.h"
#include "tests/transport/zeromq/peers.h"
#include "transport/zeromq/connection.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

TEST_CASE("connections with the same routing id are different peers, and the first one stays") {
  Router router;
  Dealer first(router.port(), "a"), second(router.port(), "a");
  first.send("hello");
  router.run_until_event("1 hello");
  second.send("it is me");
  router.run_until_event("2 it is me");
  CHECK(router.send(1, "to the first") == ZeromqRouter::Sent::accepted);
  CHECK(router.send(2, "to the second") == ZeromqRouter::Sent::accepted);
  CHECK(router.next_of(second) == "to the second");
  CHECK(router.next_of(first) == "to the first");
  CHECK(router.refusals.empty());
}

TEST_CASE("a refusal names what is wrong") {
  Router router;
  const auto greeting = [](char version, const std::string& mechanism) {
    return "\xff\0\0\0\0\0\0\0\0\x7f"s + version + '\1' + mechanism +
           std::string(52 - mechanism.size(), '\0');
  };
  const auto ready = [](const std::string& type) {
    return "\5READY\13Socket-Type\0\0\0"s + static_cast<char>(type.size()) + type;
  };
  const auto refusal = [&](const auto& play) {
    RawPeer peer(router.port());
    play(peer);
    router.run_until([&] { return !router.refusals.empty(); });
    const std::string why = router.refusals.back();
    router.refusals.clear();
    return why;
  };
  const auto sends = [&](const std::string& bytes) {
    return refusal([&](RawPeer& peer) { peer.send(bytes); });
  };
  const auto says = [&](const std::string& body) {
    return refusal([&](RawPeer& peer) { peer.greet().command(body); });
  };
  CHECK(sends("GET / HTTP/1.1\r\n") == "the bytes are no greeting of ZMTP 3");
  CHECK(sends(greeting(2, "NULL")) == "the version of ZMTP is older than 3");
  CHECK(sends(greeting(3, "CURVE")) == "the security mechanism is not NULL");
  CHECK(says(ready("PUB")) == "the type of the peer's socket is not DEALER, REQ or ROUTER");
  CHECK(says(ready("DEALER") + "\10Identity\0\0\0\1\0"s) ==
        "the routing id is longer than 255 bytes or begins with 0");
  CHECK(says("\5ERROR\0"s) == "the first command is not READY");
  CHECK(says(ready("DEALER") + "\1") == "the READY command is malformed");
  CHECK(says(std::string(5000, 'x')) == "a command is too long");
  CHECK(refusal([](RawPeer& peer) { peer.greet().hang_up(); }) ==
        "it was closed before its first message");
}

TEST_CASE("a check whether the port is open is not a refused client") {
  Router router;
  RawPeer(router.port()).hang_up();
  router.run_until([&] { return router.stats.disconnected.value() == 1; });
  CHECK(router.refusals.empty());
  CHECK(router.refused(Refusal::handshake) == 0);
}

TEST_CASE("a peer that is refused in the handshake gets no READY") {
  Router router;
  RawPeer wrong(router.port());
  wrong.greet().command("\5READY\13Socket-Type\0\0\0\3PUB"s);
  router.run_until([&] { return wrong.is_over(); });
  CHECK_FALSE(wrong.is_ready());
}

TEST_CASE("a peer of ZMTP 3.0 gets no PING, and may be silent longer than others") {
  Router router({.times = {.heartbeat = 5ms, .unanswered = 50ms}});
  RawPeer old(router.port()), other(router.port());
  router.welcome(old.is_old()).part("hello");
  router.run_until_event("1 hello");
  router.welcome(other).part("hello");
  router.run_until_event("2 lost");
  CHECK(other.has_received("\4PING"));
  CHECK_FALSE(old.has_received("\4PING"));
  old.part("still there");
  router.run_until_event("1 still there");
}

TEST_CASE("a message of a peer of ZMTP 3.0 that takes too long ends its connection") {
  Router router({.times = {.heartbeat = 5ms, .message = 50ms}});
  RawPeer slow(router.port());
  router.welcome(slow.is_old()).part("hello").send("\0\7half"s);
  router.run_until_event("1 lost");
}

TEST_CASE("a connection without PING that is silent for an hour has no time limit left") {
  net::io_context context;
  const ZeromqTimes times;
  const Time begin{};
  ZeromqConnection connection(Socket(context), {}, 1000, begin);
  std::string bytes = "\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL"s + std::string(48, '\0');
  Bytes greeting = std::as_bytes(std::span(bytes));
  CHECK(connection.reader.next(greeting) == ZmtpReader::Found::greeting);
  connection.ready = connection.reported = true;
  for (Time now = begin; now < begin + 1h; now += times.heartbeat) {
    connection.ping_when_due(times, zmtp_ping(times.silence), now);
    CHECK_FALSE(connection.late(times, now));
    CHECK(connection.next_due(times) == now + times.heartbeat);
  }
  CHECK(connection.output.empty());
}
