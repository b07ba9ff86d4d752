// SPDX-License-Identifier: Apache-2.0
// The ZeroMQ server over real sockets: the messages that its peers receive, and how it ends.
#include "transport/sessions/zeromq/zeromq_server.h"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include "tests/support/patience.h"
#include "tests/transport/sessions/zeromq/peer_fixture.h"
#include "tests/transport/zeromq/peers.h"

using namespace millrace;
using test::Dealer;
using test::Lines;
using test::RawPeer;
namespace cp = client_protocol;

namespace {

// A server whose thread is the test.
class Served {
 public:
  Served() {
    scope.report_refused([this](std::string_view peer, std::string_view why) {
      refusals.push_back(std::string(peer) + " " + std::string(why));
    });
    server->start();
  }
  ~Served() {
    scope.stop();
    run_until([] { return false; }, 50);
    server.reset();
  }

  template <class Message>
  void says(Dealer& dealer, const Message& message) {
    const Bytes bytes = encoder.encode(message);
    dealer.send({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  // Opens a stream over a raw connection: messages to it stay in the socket until the test reads.
  void opens(RawPeer& peer) {
    const Bytes bytes = encoder.encode(cp::Open{.stream = 1});
    peer.shake_hands().part({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    run_until([&] { return !admission.streams.empty(); });
  }
  // The next message of the service, as a line.
  std::string next_of(Dealer& dealer) {
    std::optional<std::string> text;
    run_until([&] { return text = dealer.receive(); });
    const auto said = decoder.to_client(std::as_bytes(std::span(*text)));
    return said ? std::visit(test::LineOf(), *said) : "no message";
  }
  void opens(Dealer& dealer) {
    says(dealer, cp::Open{.stream = 1});
    (void)next_of(dealer);
    (void)next_of(dealer);  // its credit
  }
  // Runs until `happened`, or until this number of steps.
  void run_until(const auto& happened, int most = 0) {
    const Time guard = Clock::now() + patience;
    for (int done = 0; !happened() && (most == 0 || done < most); ++done) {
      if (Clock::now() > guard) throw std::runtime_error("it does not happen");
      context.restart();
      context.run_one_for(std::chrono::milliseconds(1));
    }
  }

  net::io_context context{1};
  ConnectionLimits limits;
  TransportStats websocket;
  std::vector<std::string> reports;
  std::vector<std::string> refusals;
  SessionScope scope{context.get_executor(), limits, websocket,
                     [this](std::string_view what) { reports.emplace_back(what); }};
  test::RecordingAdmission admission;
  ClientGate gate{.sockets = Budget(10)};
  std::optional<ZeromqServer> server{
      std::in_place, scope, ZeromqBinding{.endpoint = "tcp://127.0.0.1:0"}, admission, gate};
  cp::Encoder encoder;
  cp::Decoder decoder{1 << 16};
};

}  // namespace

TEST_CASE_METHOD(Served,
                 "a peer's messages reach its stream, and the stream's messages reach the peer") {
  Dealer dealer(server->port());
  says(dealer, cp::Open{.stream = 1});
  CHECK(next_of(dealer) == "ready 1 s0 default 0 2");
  CHECK(next_of(dealer) == "credit 1 100");
  says(dealer, cp::Flush{.stream = 1, .mark = 4});
  run_until([&] { return !admission.streams[0].calls.empty(); });
  CHECK(admission.streams[0].calls == Lines{"flush 4"});
  admission.streams[0].outbox->flushed(4, 0);
  CHECK(next_of(dealer) == "flushed 1 4");
  CHECK(server->stats().connections.value() == 1);
  CHECK(server->stats().messages[MessageType::control].value() == 1);
}

TEST_CASE_METHOD(Served, "an invalid message, or one of two parts, is answered and counted") {
  Dealer dealer(server->port());
  dealer.send("x");
  CHECK(next_of(dealer) == "error - schema");
  dealer.send("x", true).send("y");
  CHECK(next_of(dealer) == "error - schema");
  CHECK(server->stats().rejected[MessageFault::verify].value() == 1);
  CHECK(server->stats().rejected[MessageFault::schema].value() == 1);
}

TEST_CASE_METHOD(Served, "an empty message, such as that of ZMQ_PROBE_ROUTER, has no effect") {
  Dealer dealer(server->port());
  for (int i = 0; i < 5; ++i) dealer.send("");
  opens(dealer);
  dealer.send("");
  says(dealer, cp::Flush{.stream = 1, .mark = 4});
  run_until([&] { return !admission.streams[0].calls.empty(); });
  CHECK(admission.streams[0].calls == Lines{"flush 4"});
  CHECK(server->stats().rejected[MessageFault::verify].value() == 0);
}

TEST_CASE_METHOD(Served, "a peer that has disconnected loses its streams, and no other peer does") {
  Dealer first(server->port()), second(server->port());
  opens(first);
  opens(second);
  first.vanish();
  run_until([&] { return !admission.streams[0].calls.empty(); });
  CHECK(admission.streams[0].calls == Lines{"lost"});
  CHECK(admission.streams[1].calls.empty());
  CHECK(server->stats().closed[Closing::client].value() == 1);
  CHECK(server->stats().connections.value() == 1);
}

TEST_CASE_METHOD(Served, "a failure ends only the peer for which it happened, and is reported") {
  Dealer first(server->port()), second(server->port());
  opens(first);
  opens(second);
  admission.streams[0].fails = true;
  says(first, cp::Reset{.stream = 1});
  run_until([&] { return server->stats().closed[Closing::internal].value() == 1; });
  CHECK(reports.size() == 1);
  CHECK(admission.streams[0].calls == Lines{"lost"});
  says(second, cp::Reset{.stream = 1});
  run_until([&] { return !admission.streams[1].calls.empty(); });
  CHECK(admission.streams[1].calls == Lines{"reset"});
}

TEST_CASE_METHOD(Served, "a drain waits until the last stream has ended") {
  Dealer dealer(server->port());
  opens(dealer);
  bool over = false;
  scope.start();
  scope.drain();
  net::co_spawn(context, scope.join(), [&](std::exception_ptr) { over = true; });
  admission.streams[0].outbox->goaway();
  CHECK(next_of(dealer) == "goaway 1");
  CHECK_FALSE(over);
  admission.streams[0].outbox->closed(0, 0, true);
  CHECK(next_of(dealer) == "closed 1 0 0");
  run_until([&] { return over; });
}

TEST_CASE_METHOD(Served, "a drain waits until the hosts of all peers have received every result") {
  RawPeer slow(server->port(), 4096);
  opens(slow);
  bool over = false;
  scope.start();
  const std::size_t size = 100'000;
  admission.streams[0].outbox->result({}, {Answer::Kind::text, std::string(size, 'x')});
  admission.streams[0].outbox->closed(0, 1, true);
  run_until([&] { return !admission.streams[0].calls.empty(); });
  CHECK(admission.streams[0].calls == Lines{"lost clean"});  // the router has all messages
  scope.drain();
  net::co_spawn(context, scope.join(), [&](std::exception_ptr) { over = true; });
  run_until([] { return false; }, 1000);
  CHECK_FALSE(over);
  std::size_t read = 0;
  run_until([&] { return (read += slow.read_some(), over && read > size); });
}

TEST_CASE_METHOD(Served, "a peer that takes no bytes from its socket is a slow reader") {
  limits.write_stall = std::chrono::milliseconds(300);
  RawPeer deaf(server->port());
  opens(deaf);
  admission.streams[0].outbox->result({}, {Answer::Kind::text, std::string(8 << 20, 'x')});
  scope.start();
  run_until(
      [&] { return std::ranges::count(admission.streams[0].calls, "failed slow_reader") == 1; });
  CHECK(admission.streams[0].written == 1);  // the router has it
}

TEST_CASE_METHOD(Served,
                 "while memory is short, new ZeroMQ connections are refused, and others continue") {
  Dealer dealer(server->port());
  opens(dealer);
  gate.memory_short = true;
  RawPeer late(server->port());
  run_until([&] { return late.is_over(); });
  CHECK(server->socket_stats().refused[Refusal::overload].value() == 1);
  CHECK(refusals == Lines{late.address() + " the service is short of memory"});
  says(dealer, cp::Flush{.stream = 1, .mark = 4});
  run_until([&] { return !admission.streams[0].calls.empty(); });
  gate.memory_short = false;
  Dealer next(server->port());
  opens(next);
}

TEST_CASE_METHOD(Served,
                 "a connection that is refused is reported with its address and the reason") {
  const Share others(gate.sockets, 9);
  RawPeer wrong(server->port());
  run_until([&] { return server->socket_stats().connections.value() == 1; });
  RawPeer late(server->port());
  run_until([&] { return late.is_over(); });
  wrong.send(std::string(64, 'x'));
  run_until([&] { return wrong.is_over(); });
  CHECK(refusals == Lines{late.address() + " the service has reached its limit of connections",
                          wrong.address() + " the bytes are no greeting of ZMTP 3"});
  CHECK(websocket.refused[Refusal::limit_global].value() == 0);
}

TEST_CASE_METHOD(Served, "a stream has the address of its peer") {
  RawPeer peer(server->port());
  opens(peer);
  CHECK(admission.streams[0].outbox->peer() == peer.address());
}

TEST_CASE_METHOD(Served, "a stop ends every stream as lost at once") {
  Dealer dealer(server->port());
  opens(dealer);
  scope.stop();
  CHECK(admission.streams[0].calls == Lines{"lost"});
  CHECK(server->stats().connections.value() == 0);
}

TEST_CASE_METHOD(Served, "a stop does not cut the last messages") {
  Dealer dealer(server->port());
  opens(dealer);
  admission.streams[0].outbox->closed(0, 0, true);
  run_until([&] { return !admission.streams[0].calls.empty(); });
  scope.stop();
  CHECK(next_of(dealer) == "closed 1 0 0");
}

TEST_CASE_METHOD(Served, "a round of checks is done in parts, and other work runs between them") {
  admission.credit = 0;  // a stream without credit records its checks
  RawPeer first(server->port()), second(server->port());
  for (RawPeer* peer : {&first, &second}) {
    peer->shake_hands();
    for (std::uint64_t stream = 1; stream <= 1000; ++stream) {
      const Bytes bytes = encoder.encode(cp::Open{.stream = stream});
      peer->part({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
  run_until([&] { return admission.streams.size() == 2000; });
  const auto checked = [&] {
    std::ptrdiff_t all = 0;
    for (const test::RecordedStream& stream : admission.streams)
      all += std::ranges::count(stream.calls, "tick");
    return all;
  };
  std::ptrdiff_t before = checked();
  scope.sweep(Clock::now());
  CHECK(checked() - before <= 520);
  run_until([&] {
    const auto now = checked(), looked = now - std::exchange(before, now);
    CHECK(looked <= 520);
    return now == 2000;
  });
}
