// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/router.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/zeromq/fixture.h"
#include "tests/transport/zeromq/peers.h"

using namespace millrace;
using namespace millrace::test;

using Lines = std::vector<std::string>;
using Sent = ZeromqRouter::Sent;

TEST_CASE("peers are distinguished, with any routing ids") {
  Router router;
  Dealer nameless(router.port()), named(router.port(), "a"),
      long_name(router.port(), std::string(255, 'x'));
  nameless.send("one");
  router.run_until_event("1 one");
  named.send("two");
  router.run_until_event("2 two");
  long_name.send("three");
  router.run_until_event("3 three");
  for (int peer = 1; peer <= 3; ++peer)
    CHECK(router.send(peer, "to " + std::to_string(peer)) == Sent::accepted);
  CHECK(router.next_of(nameless) == "to 1");
  CHECK(router.next_of(named) == "to 2");
  CHECK(router.next_of(long_name) == "to 3");
}

TEST_CASE("a peer receives only its own messages while others receive theirs") {
  Router router;
  Dealer first(router.port());
  first.send("hello");
  router.run_until_event("1 hello");
  for (int peer = 2; peer < 50; ++peer) {
    Dealer dealer(router.port());
    dealer.send("hello");
    router.run_until([&] {
      (void)router.send(1, "busy");
      (void)first.receive();
      return router.has_event(std::to_string(peer) + " hello");
    });
    CHECK(router.send(peer, "welcome") == Sent::accepted);
    CHECK(router.next_of(dealer) == "welcome");
    CHECK(router.send(peer, "goodbye") == Sent::accepted);
    CHECK(router.next_of(dealer) == "goodbye");
  }
}

TEST_CASE("all messages of a peer are received in order, and then its loss") {
  Router router;
  Dealer dealer(router.port());
  Lines expected;
  for (int i = 0; i < 2000; ++i) {
    dealer.send(std::to_string(i));
    expected.push_back("1 " + std::to_string(i));
    if (i == 0) router.run_until_event("1 0");
  }
  expected.push_back("1 lost");
  dealer.leave();
  router.run_until_event("1 lost");
  router.run_until([&] { return router.stats.disconnected.value() == 1; });
  CHECK((router.events == expected));  // in parentheses: Catch must not print them
  CHECK(router.send(1, "too late") == Sent::no_peer);
  CHECK(router.room.taken() == 0);
}

TEST_CASE("a peer that connects again with its routing id is another peer") {
  Router router;
  for (int time = 1; time <= 50; ++time) {
    Dealer dealer(router.port(), "a");
    dealer.send("hello");
    router.run_until_event(std::to_string(time) + " hello");
    dealer.leave();
    if (time % 2 == 0) router.run_until_event(std::to_string(time) + " lost");
  }
  router.run_until_event("50 lost");
  CHECK(router.events.size() == 100);
}

TEST_CASE("a message of more than one part is malformed, and counted once") {
  Router router;
  Dealer dealer(router.port());
  dealer.send("two", true).send("parts");
  for (int i = 0; i < 999; ++i) dealer.send("of a thousand", true);
  dealer.send("").send("").send("one");
  router.run_until_event("1 one");
  CHECK(router.events == Lines{"1 malformed", "1 malformed", "1 ", "1 one"});
  CHECK(router.stats.malformed.value() == 2);
}

TEST_CASE("a part over the limit ends its connection and no other") {
  Router router({.max_message = 1000});
  Dealer good(router.port());
  RawPeer bad(router.port());
  good.send("hello");
  router.welcome(bad).part("hello");
  router.run_until_event("2 hello");
  bad.send(std::string("\2\0\0\0\0\0\0\3\xe9", 9));
  router.run_until([&] { return bad.is_over(); });
  router.run_until([&] { return router.events.size() == 3; });
  good.send(std::string(1000, 'x'));
  router.run_until([&] { return router.events.size() == 4; });
  CHECK(router.events.back().ends_with("xxx"));
}

TEST_CASE("only a peer that does not read is full, and it can receive more when it reads again") {
  Router router({.max_message = 1 << 20});
  Dealer slow(router.port(), "", 1), other(router.port());
  slow.send("slow");
  router.run_until_event("1 slow");
  other.send("other");
  router.run_until_event("2 other");
  const std::string large(1 << 20, 'x');
  int taken = 0;
  router.run_until([&] {
    const Sent sent = router.send(1, large);
    taken += sent == Sent::accepted;
    return sent == Sent::full;
  });
  router.waiting = "the last";
  CHECK(router.send(2, "quick") == Sent::accepted);
  CHECK(router.next_of(other) == "quick");
  int read = 0;
  while (router.next_of(slow) != "the last") ++read;
  CHECK(read == taken);
  CHECK(router.stats.would_block.value() >= 1);
}

TEST_CASE("a flood of one peer is received whole, and other peers long before its end") {
  Router router;
  RawPeer flood(router.port()), other(router.port());
  router.welcome(flood).part("first");
  router.run_until_event("1 first");
  router.welcome(other);
  constexpr int flooding = 40'000;
  std::string parts;
  for (int i = 0; i < flooding; ++i) parts += std::string_view("\0\1x", 3);
  flood.send(parts);
  other.part("me too");  // both are in the kernel's buffers before the router continues to read
  router.run_until([&] { return router.events.size() == flooding + 2; });
  // At most 16 KiB are read at once: 5461 parts. The kernel may deliver the other's bytes late.
  const auto before = std::ranges::find(router.events, "2 me too") - router.events.begin();
  CHECK(before < flooding / 2);
}

TEST_CASE("between the turns that a message takes, other peers are received") {
  Router router;
  RawPeer peer(router.port()), other(router.port());
  router.welcome(peer).part("first");
  router.run_until_event("1 first");
  router.welcome(other);
  router.left = 100;
  router.work = Turns::first;
  router.meanwhile = [&] { other.part("me too"); };
  peer.part("long").part("short");
  router.run_until_event("1 short");
  CHECK(std::erase(router.events, "2 me too") == 1);
  Lines expected{"1 first", "1 long"};
  expected.insert(expected.end(), 100, "1 proceeds");
  expected.push_back("1 short");
  CHECK(router.events == expected);
}

TEST_CASE("what a peer has sent before its end is processed in further turns") {
  Router router;
  RawPeer peer(router.port());
  router.left = 3;
  router.work = Turns::further;
  router.welcome(peer).part("long").part("short").hang_up();
  router.run_until_event("1 lost");
  CHECK(router.events ==
        Lines{"1 long", "1 proceeds", "1 proceeds", "1 proceeds", "1 short", "1 lost"});
}

TEST_CASE("a peer that is cut is lost, and no more of its messages are received") {
  Router router;
  RawPeer peer(router.port());
  router.welcome(peer).part("hello");
  router.run_until_event("1 hello");
  router.router->cut(router.peer(1));
  peer.part("again");
  CHECK(router.send(1, "no") == Sent::no_peer);
  router.run_until_event("1 lost");
  CHECK(peer.is_over());
  CHECK(router.events == Lines{"1 hello", "1 lost"});
}

TEST_CASE("an endpoint that cannot be bound is an error that names it") {
  Router router;
  const std::string taken = "tcp://127.0.0.1:" + std::to_string(router.port());
  CHECK_THROWS_WITH(Router({.endpoint = taken}), Catch::Contains(taken));
}

TEST_CASE("a router that ends waits for sent messages, but only for a limited time") {
  std::optional<Router> router(std::in_place, ZeromqBinding{.max_message = 1 << 20});
  Dealer deaf(router->port(), "", 1), reader(router->port());
  deaf.send("deaf");
  router->run_until_event("1 deaf");
  reader.send("reader");
  router->run_until_event("2 reader");
  const std::string large(1 << 20, 'x');
  while (router->send(1, large) == Sent::accepted) {
  }
  CHECK(router->send(2, "goodbye") == Sent::accepted);
  const Time begin = Clock::now();
  router.reset();
  CHECK(Clock::now() - begin < patience);
  zmq::message_t last;
  reader.socket().set(zmq::sockopt::rcvtimeo, 30'000);
  CHECK(reader.socket().recv(last));
  CHECK(last.to_string() == "goodbye");
}

TEST_CASE("a client may keep its connection for 30 s after the last byte of a stopped service") {
  Router router({.times = {.heartbeat = std::chrono::milliseconds(5)}});
  RawPeer peer(router.port());
  peer.shake_hands();
  router.run_until([&] { return peer.has_received("\4PING\1\x2c"); });  // 300 tenths of a second
}
