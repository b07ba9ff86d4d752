// SPDX-License-Identifier: Apache-2.0
// Clients over ZeroMQ continue their streams over new connections.
#include <catch2/catch.hpp>

#include "tests/service/pipelines/admission_under_test.h"
#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
using test::Lines;
namespace cp = client_protocol;

namespace {

using Numbers = std::vector<std::uint64_t>;

struct Service : AdmissionUnderTest {
  // A client's connection, and its stream 1.
  struct Client {
    explicit Client(Service& service) : peer(wire, service.context, service.now) {}
    template <class Message>
    void says(Service& service, const Message& message) {
      peer.received(cp::ToService(message), service.now);
      peer.flush(service.now);
      service.run();
    }
    // Sends a row of four frames.
    void sends(Service& service, std::uint64_t at) {
      const std::array<std::byte, 8> row{};
      says(service, cp::Frames{.stream = 1, .at = at, .bytes = row});
    }
    Lines received(Service& service) {
      peer.flush(service.now);
      wire.numbers.clear();
      return std::exchange(wire.lines, {});
    }
    // Without credit.
    Lines messages(Service& service) {
      Lines lines = received(service);
      std::erase_if(lines, [](const std::string& line) { return line.starts_with("credit"); });
      return lines;
    }
    test::MemoryWire wire;
    ClientPeer peer;
  };

  Client& connects() { return peers.emplace_back(*this); }
  Client& opens() {
    Client& client = connects();
    client.says(*this, cp::Open{.stream = 1, .id = "mic", .resume = true});
    (void)client.received(*this);
    return client;
  }
  // Connects again, with all messages before number `n`.
  Client& resumes(const Client& before, std::uint64_t n) {
    Client& client = connects();
    client.says(
        *this,
        cp::Open{
            .stream = 1, .id = "mic", .resume = true, .resume_token = before.wire.token, .n = n});
    return client;
  }
  void answers(test::Link& worker, std::string text) {
    answer(worker, {{Answer::Kind::text, std::move(text)}});
  }

  Time now = Clock::now();
  TransportStats peer_stats;
  cp::Encoder encoder;
  RetryTimes retry_times;
  ClientAccess access;
  PeerContext context{*admission, encoder, limits, peer_stats, retry_times, access};
  std::deque<Client> peers;
};

}  // namespace

TEST_CASE("a client that is lost finds its stream, and receives each message once") {
  Service d;
  test::Link& worker = d.attach();
  auto& first = d.opens();
  first.sends(d, 0);
  d.answers(worker, "a");
  first.sends(d, 4);
  CHECK(first.messages(d) == Lines{"result 1 0 a"});
  first.peer.lost(d.now);
  d.answers(worker, "b");
  CHECK(d.live() == 1);

  auto& second = d.resumes(first, 1);
  const Lines received = second.received(d);
  REQUIRE(received.size() == 3);
  CHECK_THAT(received[0], Catch::StartsWith("ready 1 mic default 8 2 keep "));
  CHECK_THAT(received[0], Catch::EndsWith(" resumed 0"));
  CHECK(received[1] == "result 1 1 b");
  CHECK_THAT(received[2], Catch::StartsWith("credit 1 "));
  second.sends(d, 4);  // again, which has no effect
  second.sends(d, 8);
  d.answers(worker, "c");
  CHECK(second.messages(d) == Lines{"result 1 2 c"});
  CHECK(second.wire.token != first.wire.token);
}

TEST_CASE("the numbers of a stream continue over the next connection") {
  Service d;
  test::Link& worker = d.attach();
  auto& first = d.opens();
  first.says(d, cp::Post{.stream = 1, .data = "[1"});  // rejected: number 0
  first.sends(d, 0);
  d.answers(worker, "a");
  first.peer.flush(d.now);
  CHECK(first.wire.numbers == Numbers{0, 1});
  first.peer.lost(d.now);
  auto& second = d.resumes(first, 0);
  CHECK(second.wire.numbers == Numbers{0, 1});
  CHECK_THAT(second.wire.lines[0], Catch::EndsWith(" resumed 1"));  // the command counts
}

TEST_CASE("a stream that a client continues leaves its old connection with a conflict") {
  Service d;
  d.attach();
  auto& first = d.opens();
  first.sends(d, 0);
  auto& second = d.resumes(first, 0);
  CHECK(first.messages(d) == Lines{"error 1 conflict"});
  CHECK(first.peer.streams() == 0);
  first.peer.lost(d.now);
  CHECK(second.peer.streams() == 1);
  CHECK(d.live() == 1);
}

TEST_CASE("a stream that a client has continued at another service leaves its old connection") {
  Service d, elsewhere;
  elsewhere.shared.resume_keys.replace(d.shared.resume_keys.get());
  auto& first = d.opens();
  first.sends(d, 0);
  auto& moved = elsewhere.resumes(first, 0);
  CHECK_THAT(moved.received(elsewhere)[0], Catch::EndsWith(" anew 0"));
  auto& second = d.resumes(moved, 0);
  CHECK_THAT(second.received(d)[0], Catch::EndsWith(" anew 0"));
  CHECK(first.messages(d) == Lines{"error 1 conflict"});
  CHECK(first.peer.streams() == 0);
}

TEST_CASE("a stream that was continued elsewhere after a lost ready is opened anew at its return") {
  Service d, elsewhere;
  elsewhere.shared.resume_keys.replace(d.shared.resume_keys.get());
  test::Link& worker = elsewhere.attach();
  auto& first = d.opens();
  first.sends(d, 0);
  (void)d.resumes(first, 0);  // its client does not receive this ready
  auto& moved = elsewhere.resumes(first, 0);
  CHECK_THAT(moved.received(elsewhere)[0], Catch::EndsWith(" anew 0"));
  moved.sends(elsewhere, 0);
  elsewhere.answers(worker, "a");
  (void)moved.received(elsewhere);
  auto& back = d.resumes(moved, 1);
  CHECK_THAT(back.received(d)[0], Catch::EndsWith(" anew 0"));
}

TEST_CASE("a stream without resume ends with its connection, and so does one without input") {
  Service d;
  auto& client = d.connects();
  client.says(d, cp::Open{.stream = 1});
  client.sends(d, 0);
  client.says(d, cp::Open{.stream = 2, .id = "mic", .resume = true});
  CHECK(d.live() == 2);
  client.peer.lost(d.now);
  d.run();
  CHECK(d.live() == 0);
}

TEST_CASE("an acknowledgement of messages that do not exist ends that stream only") {
  Service d;
  auto& client = d.opens();
  client.says(d, cp::Open{.stream = 2, .resume = true});
  (void)client.received(d);
  client.says(d, cp::Received{.stream = 1, .n = 1});
  CHECK(client.messages(d) == Lines{"error 1 schema"});
  client.says(d, cp::Received{.stream = 1, .n = 1});  // the error itself
  CHECK(client.peer.streams() == 1);
  client.says(d, cp::Flush{.stream = 2, .mark = 1});
  CHECK(client.messages(d).empty());
  CHECK_FALSE(client.peer.ending());
}

TEST_CASE("a client receives the last messages of a stream that ended while it was lost") {
  Service d;
  test::Link& worker = d.attach();
  auto& first = d.opens();
  first.sends(d, 0);
  first.says(d, cp::End{.stream = 1});
  first.peer.lost(d.now);
  d.answers(worker, "a");
  d.answer(worker);
  auto& second = d.resumes(first, 0);
  const Lines received = second.received(d);
  CHECK(received.back() == "closed 1 4 1");
  CHECK(std::ranges::count(received, "result 1 0 a") == 1);
  CHECK(second.peer.streams() == 1);
  second.says(d, cp::Received{.stream = 1, .n = 2});
  CHECK(second.peer.streams() == 0);
  CHECK(d.live() == 0);
}
