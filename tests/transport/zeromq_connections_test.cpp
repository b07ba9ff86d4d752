// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_connections.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <zmq.hpp>

#include "tests/support/patience.h"
#include "tests/transport/zeromq_peers.h"
#include "transport/zeromq_socket.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A ROUTER whose messages the test takes when it likes.
class Bound {
 public:
  Bound()
      : socket_(context_, zmq::socket_type::router), connections(context_, socket_, room_, stats) {
    socket_.bind("tcp://127.0.0.1:*");
    const std::string endpoint = socket_.get(zmq::sockopt::last_endpoint);
    port = static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  Budget room_{100};

 public:
  ZeromqStats stats;
  ZeromqConnections connections;
  std::uint16_t port = 0;

  void run_until(const auto& happened) {
    const Time guard = Clock::now() + patience;
    while (!happened()) {
      if (Clock::now() > guard) throw std::runtime_error("it does not happen");
      connections.answer(Clock::now());
      connections.read(Clock::now());
    }
  }
  // One that has shaken hands.
  std::unique_ptr<RawPeer> peer(const std::string& name) {
    auto peer = std::make_unique<RawPeer>(port);
    peer->shake_hands(name);
    run_until([&] { return peer->is_ready(); });
    return peer;
  }
  // The next message's name. Its connection is told by it.
  ZeromqMessage next() {
    ZeromqMessage name, body;
    run_until([&] { return receive(name); });
    (void)receive(body);
    return name;
  }

 private:
  bool receive(ZeromqMessage& part) {
    return zeromq::receive(socket_, static_cast<zmq_msg_t*>(part.handle()));
  }
};

int descriptor_of(ZeromqMessage& part) {
  return zmq_msg_get(static_cast<zmq_msg_t*>(part.handle()), ZMQ_SRCFD);
}

}  // namespace

TEST_CASE("a message of a connection that has ended is not taken for one of its successor's") {
  Bound bound;
  auto first = bound.peer("a");
  first->part("of the first");
  first.reset();
  bound.run_until([&] { return bound.stats.disconnected.value() == 1; });
  const auto second = bound.peer("b");
  second->part("of the second");
  ZeromqMessage of_first = bound.next(), of_second = bound.next();
  REQUIRE(of_first.text() == "a");
  REQUIRE(descriptor_of(of_first) == descriptor_of(of_second));
  CHECK_FALSE(bound.connections.heard(of_first));
  CHECK(bound.connections.heard(of_second));
  bound.connections.settle();
  CHECK(bound.stats.refused[Refusal::handshake].value() == 0);
}

TEST_CASE("who has the descriptor of one that ended unheard is heard") {
  Bound bound;
  auto first = bound.peer("a");
  first.reset();
  bound.run_until([&] { return bound.stats.disconnected.value() == 1; });
  const auto second = bound.peer("b");
  second->part("hello");
  ZeromqMessage of_second = bound.next();
  CHECK(bound.connections.heard(of_second));
  bound.connections.settle();
  CHECK(bound.stats.refused[Refusal::handshake].value() == 1);
}
