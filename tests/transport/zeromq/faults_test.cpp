// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "tests/support/allocations.h"
#include "tests/transport/zeromq/fixture.h"
#include "tests/transport/zeromq/peers.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

using Lines = std::vector<std::string>;

namespace {

// Checks that other peers are still served after an error of one peer.
void check_service(Router& router) {
  Dealer dealer(router.port());
  dealer.send("still there?");
  router.run_until([&] {
    return std::ranges::any_of(router.events,
                               [](const auto& line) { return line.ends_with(" still there?"); });
  });
  router.events.clear();
}

// A property of a READY that is `size` bytes long.
std::string property(std::size_t size) {
  const std::size_t value = size - 6;
  return "\1x"s + std::string{'\0', '\0', static_cast<char>(value >> 8), static_cast<char>(value)} +
         std::string(value, 'x');
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const directory = ::opendir("/proc/self/fd");
  while (::readdir(directory)) ++count;
  ::closedir(directory);
  return count;
}

}  // namespace

TEST_CASE("bytes that are not ZMTP end their connection and no other") {
  Router router;
  std::list<RawPeer> peers;
  for (const std::string& bytes :
       {"GET / HTTP/1.1\r\nHost: a\r\n\r\n"s, "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"s,
        "quit\r\nquit\r\nquit\r\nquit\r\n"s, std::string(200, '\0'),
        "\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL"s + std::string(48, '\0') + std::string(100, '\xff'),
        "\xff\0\0\0\0\0\0\0\1\x7f\1\5\0\0\0\1x"s,  // ZMTP 2.0: a DEALER, its name, a part
        "\xff\0\0\0\0\0\0\0\0\x7f\3\1PLAIN"s + std::string(47, '\0')})
    peers.emplace_back(router.port()).send(bytes);
  peers.emplace_back(router.port()).shake_hands(std::string(256, 'x'));
  for (RawPeer& peer : peers) router.run_until([&] { return peer.is_over(); });
  router.run_until([&] { return router.stats.disconnected.value() == peers.size(); });
  router.run_until([&] { return router.refused(Refusal::handshake) == peers.size(); });
  CHECK(router.events.empty());
  check_service(router);
}

TEST_CASE("a connection without a handshake is dropped in time") {
  Router router({.times = {.handshake = 20ms}});
  RawPeer silent(router.port()), half(router.port());
  half.send("\xff\0\0\0\0"s);
  router.run_until([&] { return silent.is_over() && half.is_over(); });
  router.run_until([&] { return router.refused(Refusal::handshake) == 2; });
  CHECK(router.room.taken() == 0);
  check_service(router);
}

TEST_CASE("a connection without a first message is cut in time") {
  Router router({.times = {.greeting = 20ms}});
  RawPeer silent(router.port());
  silent.shake_hands();
  router.run_until([&] { return silent.is_over(); });
  router.run_until([&] { return router.stats.disconnected.value() == 1; });
  CHECK(router.refused(Refusal::handshake) == 1);
  CHECK(router.events.empty());
}

TEST_CASE("a handshake of more than 4 KiB is refused by its length, before its bytes come") {
  Router router;
  RawPeer largest(router.port()), larger(router.port());
  largest.greet().command("\5READY\13Socket-Type\0\0\0\6DEALER"s + property(4096 - 64 - 9 - 28));
  router.run_until([&] { return largest.is_ready(); });
  larger.greet().send("\6\0\0\0\0\0\0\x0f\xb8"s);  // 4096 - 64 - 9, and 1
  router.run_until([&] { return larger.is_over(); });
  CHECK(router.refused(Refusal::handshake) == 1);
}

TEST_CASE("the incomplete message of a killed peer is not received") {
  Router router;
  RawPeer peer(router.port());
  router.welcome(peer).part("whole").part("first of two", true).send("\0\5ha"s);
  router.run_until_event("1 whole");
  peer.hang_up();
  router.run_until_event("1 lost");
  CHECK(router.events == Lines{"1 whole", "1 lost"});
}

TEST_CASE("a message with endless parts ends its connection, and uses no memory") {
  Router router;
  RawPeer endless(router.port()), empty(router.port()), whole(router.port());
  for (RawPeer* peer : {&endless, &empty, &whole}) router.welcome(*peer).part("hello");
  router.run_until([&] { return router.events.size() == 3; });
  whole.send("\1\2aa\0\1b"s);
  router.run_until([&] { return router.events.size() == 4; });
  const std::string part = "\3\0\0\0\0\0\1\0\0"s + std::string(1 << 16, 'x');  // more follow
  router.run_until([&] { return endless.send(part).is_over(); });
  std::string none;
  for (int i = 0; i < 10'000; ++i) none += "\1\0"s;
  router.run_until([&] { return empty.send(none).is_over(); });
  router.run_until([&] { return router.events.size() == 6; });
  CHECK(router.stats.malformed.value() == 3);
  CHECK(router.stats.connections.value() == 1);
  check_service(router);
}

TEST_CASE("a message that takes too long ends its connection") {
  Router router({.times = {.heartbeat = 10ms, .unanswered = 60s, .message = 20ms}});
  RawPeer slow(router.port()), parts(router.port());
  router.welcome(slow).part("hello").send("\0\7half"s);
  router.welcome(parts).part("hello").part("more follow", true);
  router.run_until([&] { return slow.is_over() && parts.is_over(); });
  router.run_until_event("1 lost");
  router.run_until_event("2 lost");
}

TEST_CASE("a message that takes too long ends its connection, even with PINGs between its parts") {
  Router router({.times = {.heartbeat = 10ms, .unanswered = 60s, .message = 200ms}});
  RawPeer endless(router.port());
  router.welcome(endless).part("hello").part("more follow", true);
  router.run_until([&] { return endless.command("\4PING\0\0"s).is_over(); });
  router.run_until_event("1 lost");
}

TEST_CASE("a message that arrives in pieces is read whole") {
  Router router;
  RawPeer slow(router.port());
  const std::string whole(1 << 16, 'x'), head = "\2\0\0\0\0\0\1\0\0"s;
  slow.shake_hands();
  for (std::size_t i = 0; i < head.size(); ++i) {
    slow.send(head.substr(i, 1));
    check_service(router);
  }
  slow.send(whole.substr(1));
  check_service(router);
  slow.send("x");
  router.run_until([&] {
    return std::ranges::any_of(router.events,
                               [&](const auto& line) { return line.ends_with(" " + whole); });
  });
}

TEST_CASE("the loss of a peer is reported while others send more than can be read") {
  Router router;
  std::list<Dealer> flood;
  RawPeer gone(router.port());
  router.welcome(gone).part("hello");
  router.run_until_event("1 hello");
  for (int i = 0; i < 8; ++i) {
    Dealer& dealer = flood.emplace_back(router.port());
    for (int j = 0; j < 20'000; ++j) dealer.send("x");
  }
  router.run_until([&] { return router.events.size() > 10'000; });
  gone.hang_up();
  router.run_until_event("1 lost");
  CHECK(router.events.size() < 100'000);
  for (Dealer& dealer : flood) dealer.vanish();
}

TEST_CASE("a peer whose message cannot be allocated is lost, and no other") {
  Router router;
  RawPeer peer(router.port());
  router.welcome(peer).part("hello");
  router.run_until_event("1 hello");
  router.failing = 1;
  peer.part("there is no room for this");
  router.run_until_event("1 lost");
  CHECK(peer.is_over());
  CHECK(router.events == Lines{"1 hello", "1 lost"});
  check_service(router);
}

TEST_CASE("if there is no memory for a connection, the router accepts the next one") {
  Router router;
  for (std::size_t nth = 1; nth < 60; ++nth) {
    INFO(nth);
    RawPeer unlucky(router.port());
    unlucky.shake_hands().part("hello");
    {
      const FailingAllocation failing(nth);
      for (int i = 0; i < 5; ++i) router.poll();
    }
    unlucky.hang_up();
    check_service(router);
  }
}

TEST_CASE("a peer that no longer answers is lost in time") {
  Router router({.times = {.heartbeat = 100ms, .unanswered = 1s}});
  RawPeer unplugged(router.port());
  router.welcome(unplugged).part("hello");
  router.run_until_event("1 hello");
  router.run_until_event("1 lost");
  check_service(router);
}

TEST_CASE("a connection beyond the limit is cut at once, and accepted when another has ended") {
  Router router({}, 2);
  std::list<RawPeer> peers;
  for (int i = 1; i <= 2; ++i) {
    router.welcome(peers.emplace_back(router.port())).part("hello");
    router.run_until_event(std::to_string(i) + " hello");
  }
  RawPeer third(router.port());
  third.shake_hands();
  router.run_until([&] { return third.is_over(); });
  router.run_until([&] { return router.stats.disconnected.value() == 1; });
  CHECK(router.refused(Refusal::limit_global) == 1);
  CHECK(router.refused(Refusal::handshake) == 0);
  CHECK(router.events.size() == 2);
  peers.pop_front();
  router.run_until_event("1 lost");
  check_service(router);
}

TEST_CASE("a router has its own limit of connections besides the shared budget") {
  std::atomic<std::uint64_t> most = 1;
  Router router({.max_connections = &most});
  RawPeer first(router.port());
  router.welcome(first);
  RawPeer second(router.port());
  router.run_until([&] { return second.is_over(); });
  CHECK(router.refused(Refusal::limit_global) == 1);
  most = 2;
  RawPeer third(router.port());
  router.welcome(third);
}

TEST_CASE("a thousand connections that open and close leave no descriptors") {
  Router router;
  const std::size_t before = open_descriptors();
  check_service(router);
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    RawPeer peer(router.port());
    if (i % 100 == 1) peer.shake_hands();
    if (i % 100 == 0) router.welcome(peer).part("hello");
  }
  router.run_until([&] { return router.stats.disconnected.value() == 1001; });
  router.run_until([&] { return open_descriptors() == before; });  // they are closed a moment later
  CHECK(router.room.taken() == 0);
  check_service(router);
}
