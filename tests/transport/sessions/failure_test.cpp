// SPDX-License-Identifier: Apache-2.0
// A failure in the service ends one connection, and no other.
#include <catch2/catch.hpp>
#include <new>

#include "tests/support/allocations.h"
#include "tests/transport/sessions/scarce_client.h"
#include "tests/transport/sessions/server_fixture.h"
#include "tests/transport/sessions/session_fixture.h"

using namespace millrace;

namespace {

constexpr std::size_t large = 16 * 1024;

struct ScarcityFixture : ServerFixture {
  Socket connected(const std::string& bytes = request("/v1/stream")) {
    Socket client(context);
    client.connect(server.endpoint());
    deliver(client, bytes);
    return client;
  }
  // Runs the server as its io thread does: a failed allocation inside Asio leaves run().
  std::size_t thrown_while_scarce() {
    const test::Scarcity scarcity(large);
    std::size_t thrown = 0;
    for (const Time soon = Clock::now() + std::chrono::milliseconds(50); Clock::now() < soon;) {
      try {
        context.restart();
        context.poll();
      } catch (const std::bad_alloc&) {
        ++thrown;
      }
    }
    return thrown;
  }
};

// Accepts each stream, then fails to allocate it.
class ScarceAdmission final : public StreamAdmission {
 public:
  Result<StreamHandle, RequestError> open(StreamRequest, const ClientIdentity&,
                                          ClientOutput& output) override {
    scarcity.emplace(2'000);
    return StreamHandle(new EchoStream(output, lost));
  }
  std::vector<std::string> lost;
  std::optional<test::Scarcity> scarcity;
};

}  // namespace

TEST_CASE_METHOD(ServerFixture, "a stream that fails to begin for lack of memory is lost") {
  ScarceAdmission scarce;
  MillraceV1 scarce_protocol(scarce);
  StreamServer other(scope, loopback(context), {&scarce_protocol}, gate);
  other.start();
  Socket client(context);
  client.connect(other.endpoint());
  deliver(client, request("/v1/stream"));
  scarce.scarcity.reset();
  CHECK(scarce.lost == std::vector<std::string>{"lost"});
  CHECK(gate.sockets.taken() == 0);
  other.stop_accepting();
  context.poll();
}

TEST_CASE_METHOD(ServerFixture,
                 "if there is no memory for a client, the server accepts the next one") {
  for (std::size_t nth = 1; nth < 60; ++nth) {
    const Socket client = test::connect_while_failing(context, server.endpoint(), nth);
    INFO(nth);
    REQUIRE_THAT(send(request("/v1/stream") + std::string("\x88\x82\0\0\0\0\3\xe8", 8)),
                 Catch::StartsWith("HTTP/1.1 101 "));
  }
}

TEST_CASE_METHOD(ServerFixture,
                 "time limits still apply after an allocation failed in their sweep") {
  limits.handshake = std::chrono::milliseconds(0);
  for (std::size_t nth = 1; nth < 4; ++nth) {
    const test::FailingAllocation failing(nth);
    try {
      context.restart();
      context.run_one_for(std::chrono::seconds(1));  // the sweep
    } catch (const std::bad_alloc&) {
    }
  }
  Socket silent(context);
  silent.connect(server.endpoint());
  CHECK(run(context, read_all(silent)).empty());
}

TEST_CASE_METHOD(ScarcityFixture,
                 "a message for which there is no memory ends only its connection") {
  Socket good = connected();
  Socket bad = connected();
  REQUIRE(scope.connections() == 2);
  const std::string most(30'000, 'x');  // the part of a text of 40 000 bytes
  net::write(bad, net::buffer(std::string("\x81\xfe\x9c\x40\0\0\0\0", 8) + most));
  CHECK(thrown_while_scarce() == 0);
  CHECK(eventually([&] { return scope.connections() == 1; }));
  CHECK(admission.lost == std::vector<std::string>{"lost"});
  CHECK(stats.closed[Closing::internal].value() == 1);

  deliver(good, std::string("\x82\x81\0\0\0\0y", 7));
  CHECK(stats.messages[MessageType::data].value() == 1);
}

TEST_CASE_METHOD(ServerFixture,
                 "a result for which there is no memory leaves no part in the next message") {
  const Answer answer{Answer::Kind::text, std::string(5'000, 'x')};
  for (std::size_t nth = 1; nth < 8; ++nth) {
    INFO(nth);
    MillraceV1Conversation outbox(scope, {.peer = "127.0.0.1:1"});
    SessionQueue& queue = outbox.queue();
    try {
      const test::FailingAllocation failing(nth);
      outbox.result({}, answer);
    } catch (const std::bad_alloc&) {
      outbox.flushed(7, 0);
      CHECK(queue.next().bytes == R"({"type":"flushed","mark":7})");
      queue.sent();
      CHECK(queue.empty());
    }
  }
}

TEST_CASE_METHOD(SessionFixture,
                 "a stream that throws ends its connection, and the error is reported") {
  stream.fails = true;
  client_sends(1);
  CHECK(client.aborted);
  CHECK(stream.calls == Calls{"lost"});
  CHECK(scope.connections() == 0);
  CHECK(stats.closed[Closing::internal].value() == 1);
  CHECK(reports == std::vector<std::string>{"too much"});
}

TEST_CASE_METHOD(SessionFixture,
                 "a failure while sending or waiting is not counted as the client's") {
  SECTION("sends") {
    stream.fails = true;
    result("1");
  }
  SECTION("waits") {
    stream.pause(true);
    client_sends(1);
    stream.fails = true;
    after(std::chrono::seconds(4));
  }
  CHECK(stream.calls.back() == "lost");
  CHECK(scope.connections() == 0);
  for (const Closing why : {Closing::client, Closing::drain}) CHECK(stats.closed[why].value() == 0);
  CHECK(stats.closed[Closing::internal].value() == 1);
}

TEST_CASE_METHOD(SessionFixture, "a check of time limits that throws ends its session") {
  struct Failing : SessionScope::Watched {
    using Watched::Watched;
    void check(Time) override { throw std::bad_alloc(); }
    void abort() override { aborted = true; }
    bool aborted = false;
  } failing(scope);
  after(std::chrono::seconds(31));
  CHECK(failing.aborted);
  CHECK(reports.size() == 1);
  CHECK(stream.calls == Calls{"failed idle", "lost"});  // the others are still checked
}
