// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "tests/transport/zeromq_fixture.h"
#include "tests/transport/zeromq_peers.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

using Lines = std::vector<std::string>;

namespace {

// After what somebody did wrong, somebody else is served as ever.
void check_service(Router& router) {
  Dealer dealer(router.port());
  dealer.send("still there?");
  router.run_until([&] {
    return std::ranges::any_of(router.heard,
                               [](const auto& line) { return line.ends_with(" still there?"); });
  });
  router.heard.clear();
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
        "\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL"s + std::string(48, '\0') + std::string(100, '\xff')})
    peers.emplace_back(router.port()).send(bytes);
  for (RawPeer& peer : peers) router.run_until([&] { return peer.is_over(); });
  router.run_until([&] { return router.stats.disconnected.value() == 5; });
  router.run_until([&] { return router.refused(Refusal::handshake) == 5; });
  CHECK(router.heard.empty());
  check_service(router);
}

TEST_CASE("who connects and does not shake hands is dropped in time") {
  Router router({.times = {.handshake = 20ms}});
  RawPeer silent(router.port()), half(router.port());
  half.send("\xff\0\0\0\0"s);
  router.run_until([&] { return silent.is_over() && half.is_over(); });
  router.run_until([&] { return router.refused(Refusal::handshake) == 2; });
  CHECK(router.room.taken() == 0);
  check_service(router);
}

TEST_CASE("who shakes hands and says nothing is cut in time") {
  Router router({.times = {.greeting = 20ms}});
  RawPeer silent(router.port());
  silent.shake_hands();
  router.run_until([&] { return silent.is_over(); });
  router.run_until([&] { return router.stats.disconnected.value() == 1; });
  CHECK(router.refused(Refusal::handshake) == 1);
  CHECK(router.heard.empty());
}

TEST_CASE("peers of old versions and of other mechanisms are refused") {
  Router router;
  RawPeer first(router.port()), second(router.port());
  first.send("\1\0"s + "\1\0"s);                          // ZMTP 1.0: a name, a part
  second.send("\xff\0\0\0\0\0\0\0\1\x7f\1\5\0\0\0\1x"s);  // ZMTP 2.0: a DEALER, its name, a part
  zmq::context_t context;
  zmq::socket_t secret(context, zmq::socket_type::dealer);
  secret.set(zmq::sockopt::linger, 0);
  secret.set(zmq::sockopt::plain_username, "user");
  secret.set(zmq::sockopt::plain_password, "word");
  secret.connect("tcp://127.0.0.1:" + std::to_string(router.port()));
  secret.send(zmq::buffer("hello"s), zmq::send_flags::none);
  router.run_until([&] { return first.is_over() && second.is_over(); });
  router.run_until([&] { return router.refused(Refusal::handshake) >= 3; });
  CHECK(router.heard.empty());
}

TEST_CASE("of two with the same name the second is not heard, and is cut in time") {
  Router router({.times = {.greeting = 50ms}});
  Dealer first(router.port(), "a");
  first.send("hello");
  router.run_until_heard("1 hello");
  RawPeer second(router.port());
  router.welcome(second, "a").part("it is me");
  router.run_until([&] { return second.is_over(); });
  first.send("still me");
  router.run_until_heard("1 still me");
  CHECK(router.heard == Lines{"1 hello", "1 still me"});
}

TEST_CASE("a name like those that libzmq makes up is refused") {
  Router router({.times = {.heartbeat = 10ms, .silence = 30ms}});
  RawPeer peer(router.port());
  peer.shake_hands("\0\0\0\0\1"s);
  router.run_until([&] { return peer.is_over(); });
  router.run_until([&] { return router.refused(Refusal::handshake) == 1; });
  CHECK(router.heard.empty());
}

TEST_CASE("of a peer that is killed in the middle of a message that message is not heard") {
  Router router;
  RawPeer peer(router.port());
  router.welcome(peer).part("whole").part("first of two", true).send("\0\5ha"s);
  router.run_until_heard("1 whole");
  peer.hang_up();
  router.run_until_heard("1 lost");
  CHECK(router.heard == Lines{"1 whole", "1 lost"});
}

TEST_CASE("a message that does not end costs its peer the connection, and nobody else") {
  Router router;
  RawPeer endless(router.port());
  router.welcome(endless).part("hello");
  router.run_until_heard("1 hello");
  const std::string part = "\3\0\0\0\0\0\1\0\0"s + std::string(1 << 16, 'x');  // more follow
  router.run_until([&] { return endless.send(part).is_over(); });
  router.run_until_heard("1 lost");
  CHECK(router.heard == Lines{"1 hello", "1 lost"});
  CHECK(router.stats.malformed.value() == 1);
  check_service(router);
}

TEST_CASE("a message that comes slowly is waited for") {
  Router router({.times = {.greeting = 1ms}});
  RawPeer slow(router.port());
  router.welcome(slow).part("hello");
  router.run_until_heard("1 hello");
  slow.send("\2\0\0\0\0\0\1\0\0"s + std::string((1 << 16) - 1, 'x'));
  for (int i = 0; i < 3; ++i) {
    RawPeer silent(router.port());
    router.run_until([&] { return silent.is_over(); });
  }
  slow.send("x");
  router.run_until_heard("1 " + std::string(1 << 16, 'x'));
}

TEST_CASE("a peer that is gone is lost while others say more than can be heard") {
  Router router;
  std::list<Dealer> flood;
  RawPeer gone(router.port());
  router.welcome(gone).part("hello");
  router.run_until_heard("1 hello");
  for (int i = 0; i < 8; ++i) {
    Dealer& dealer = flood.emplace_back(router.port());
    for (int j = 0; j < 20'000; ++j) dealer.send("x");
  }
  router.run_until([&] { return router.heard.size() > 10'000; });
  gone.hang_up();
  router.run_until_heard("1 lost");
  CHECK(router.heard.size() < 100'000);
}

TEST_CASE("after turns that failed what is left is heard without news of it") {
  Router router({.times = {.silence = 60s}});
  RawPeer peer(router.port());
  router.welcome(peer).part("hello");
  router.run_until_heard("1 hello");
  router.failing = 3;
  peer.send("\0\1a\0\1b\0\1c\0\1d"s);
  router.run_until_heard("1 d");
  CHECK(router.heard == Lines{"1 hello", "1 d"});
}

TEST_CASE("a peer that does not answer any more is lost in time") {
  Router router({.times = {.heartbeat = 100ms, .silence = 1s}});
  RawPeer unplugged(router.port());
  router.welcome(unplugged).part("hello");
  router.run_until_heard("1 hello");
  router.run_until_heard("1 lost");
  check_service(router);
}

TEST_CASE("a connection beyond the bound is cut at once, and has room when another leaves") {
  Router router({}, 2);
  std::list<RawPeer> peers;
  for (int i = 1; i <= 2; ++i) {
    router.welcome(peers.emplace_back(router.port())).part("hello");
    router.run_until_heard(std::to_string(i) + " hello");
  }
  RawPeer third(router.port());
  third.shake_hands();
  router.run_until([&] { return third.is_over(); });
  router.run_until([&] { return router.stats.disconnected.value() == 1; });
  CHECK(router.refused(Refusal::limit_global) == 1);
  CHECK(router.refused(Refusal::handshake) == 0);
  CHECK(router.heard.size() == 2);
  peers.pop_front();
  router.run_until_heard("1 lost");
  check_service(router);
}

TEST_CASE("a thousand that come and go leave nothing behind") {
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
