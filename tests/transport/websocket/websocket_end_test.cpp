// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <catch2/catch.hpp>

#include "tests/support/patience.h"
#include "tests/transport/sessions/server_fixture.h"
#include "tests/transport/sessions/session_fixture.h"
#include "transport/net/spawn.h"
#include "transport/net/tls/socket_io.h"
#include "transport/websocket/handshake.h"
#include "transport/websocket/websocket_connection.h"

using namespace millrace;

namespace {

constexpr std::size_t beyond_kernel = 16 << 20;  // more than the kernel accepts at once

// A session with `results` long results to send, and a client that does not read yet.
struct LongResultsFixture {
  explicit LongResultsFixture(int count = 2) : results(count) {
    limits.max_message_sent = limits.unsent = 1 << 30;
    Acceptor acceptor = ServerFixture::loopback(context);
    client.connect(acceptor.local_endpoint());
    client.non_blocking(true);
    scope.spawn(serve(acceptor.accept()));
    settle();
  }
  ~LongResultsFixture() {
    scope.stop();
    client.close();
    settle();
  }

  Task<> serve(Socket accepted) {
    StreamSocket socket(std::move(accepted));
    const std::string answer = answer_to(Upgrade{.key = "dGhlIHNhbXBsZSBub25jZQ=="});
    co_await write_all(socket, answer);
    const auto connection = open_websocket(Role::server, std::move(socket), {}, 1024);
    LoggingAdmission admission(stream);
    MillraceV1Conversation outbox(scope, ClientIdentity());
    (void)outbox.open(admission, {});
    for (int i = 0; i < results; ++i)
      outbox.result({.flags = 0}, {Answer::Kind::json, std::string(beyond_kernel, '1')});
    co_await run_session(scope, gate, *connection, outbox);
  }
  void settle() {
    context.restart();
    context.poll();
  }
  void says(const std::string& bytes) {
    REQUIRE(client.write_some(net::buffer(bytes)) == bytes.size());
    settle();
  }
  // The messages until the service closes, or until `last`.
  std::string reads(const std::string& last) {
    std::string all, piece(1 << 20, ' ');
    for (const Time limit = Clock::now() + patience;
         Clock::now() < limit && !all.ends_with(last);) {
      boost::system::error_code error;
      all.append(piece, 0, client.read_some(net::buffer(piece), error));
      if (error && error != net::error::would_block) return all + "<" + error.message() + ">";
      settle();
    }
    return all;
  }

  const int results;
  net::io_context context{1};
  ConnectionLimits limits;
  TransportStats stats;
  StreamLog stream;
  ClientGate gate{.sockets = Budget(10)};
  SessionScope scope{context.get_executor(), limits, stats};
  Socket client{context};
};

struct ManyResultsFixture : LongResultsFixture {
  ManyResultsFixture() : LongResultsFixture(4) {}
};

const std::string no_mask(4, '\0');

}  // namespace

TEST_CASE_METHOD(LongResultsFixture,
                 "a client that closes during a write receives the close back") {
  says("\x88\x82" + no_mask + "\3\xe8");
  const std::string closed = "\x88\2\3\xe8";
  const std::string seen = reads(closed);
  CHECK(seen.substr(seen.size() - closed.size()) == closed);
  CHECK(seen.size() > beyond_kernel);
  CHECK(stream.calls == std::vector<std::string>{"lost clean"});
}

TEST_CASE_METHOD(LongResultsFixture,
                 "a client that sends too long a message during a write receives the reason") {
  says("\x81\xfe\x04\x01" + no_mask);
  const std::string closed =
      "\x88\x14\3\xf1"
      "at most 1024 bytes";
  const std::string seen = reads(closed);
  CHECK(seen.ends_with(closed));
  CHECK(seen.size() > beyond_kernel);
  CHECK(stream.calls == std::vector<std::string>{"lost"});
}

TEST_CASE_METHOD(ManyResultsFixture, "a pong is sent between two results, however many wait") {
  says("\x89\x84" + no_mask + "ping");
  const std::string pong = "\x8a\4ping";
  std::string seen;
  while (seen.find(pong) == std::string::npos && seen.size() < 3 * beyond_kernel)
    seen += reads("1");
  CHECK(seen.find(pong) < 2 * beyond_kernel);
}
