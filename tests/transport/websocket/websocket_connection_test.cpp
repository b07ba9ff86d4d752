// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/websocket_connection.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "tests/support/allocations.h"
#include "tests/support/masked.h"
#include "transport/net/spawn.h"
#include "transport/net/turns.h"

using namespace millrace;
using test::masked;
using Kind = Connection::Kind;
using Flushed = Connection::Flushed;

namespace {

const std::string long_text(4 << 20, 'x');  // more than the kernel accepts at once
const std::string head_of_long_text("\x82\x7f\0\0\0\0\0\x40\0\0", 10);

Task<> await_more(Connection& connection) { co_await connection.readable(); }
Task<> await_turn(Connection& connection, bool& begun) {
  co_await connection.readable();
  begun = true;
}
Task<> await_space(Connection& connection) { co_await connection.writable(); }
Task<> await_flushed(Connection& connection, std::optional<bool>& flushed) {
  flushed = co_await connection.flushed();
}
Task<> await_end(Connection& connection, std::optional<Connection::Ended::How>& how) {
  const auto received = co_await connection.receive();
  how = std::get<Connection::Ended>(received).how;
}

// The server's end of a WebSocket, and the plain socket of its peer.
struct ConnectionFixture {
  explicit ConnectionFixture(std::string rest = "") {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    peer.assign(Tcp::v4(), ends[1]);
    peer.non_blocking(true);
    connection = open_websocket(Role::server, Socket(context.get_executor(), Tcp::v4(), ends[0]),
                                std::move(rest), 20'000);
  }
  ~ConnectionFixture() {
    connection->abort();
    settle();
  }

  void settle() {
    context.restart();
    context.poll();
  }
  void begin(Task<> task) {
    spawn(context.get_executor(), std::move(task));
    settle();
  }
  // Reads all messages that have arrived, and waits for more.
  std::string read() {
    std::string all;
    while (const auto received = connection->next())
      all.append(std::get<Connection::Message>(*received).text());
    begin(await_more(*connection));
    return all;
  }
  void arrives(const std::string& bytes) {
    net::write(peer, net::buffer(bytes));
    settle();
  }
  // The bytes that the peer has received.
  std::string taken() {
    std::string all, some(1 << 20, ' ');
    boost::system::error_code none;
    while (const std::size_t size = peer.read_some(net::buffer(some), none))
      all.append(some, 0, size);
    settle();
    return all;
  }

  net::io_context context{1};
  Socket peer{context};
  std::unique_ptr<Connection> connection;
};

struct RestFixture : ConnectionFixture {
  RestFixture() : ConnectionFixture(masked(0x82, "rest, ").substr(0, 8)) {}
};

}  // namespace

TEST_CASE_METHOD(ConnectionFixture, "control frames of the peer are counted, and no messages") {
  CHECK(read().empty());
  arrives(masked(0x89, "a") + masked(0x8a, "") + masked(0x82, "x") + masked(0x89, "b"));
  CHECK(read() == "x");
  CHECK(connection->controls() == 3);
}

TEST_CASE_METHOD(ConnectionFixture, "a write makes progress whenever the peer takes some bytes") {
  connection->add(Kind::binary, long_text);
  REQUIRE(connection->flush() == Flushed::later);
  CHECK_FALSE(connection->sending_since());
  begin(await_space(*connection));
  const auto begun = connection->sending_since();
  REQUIRE(begun);
  CHECK(connection->flush() == Flushed::later);
  begin(await_space(*connection));
  CHECK(connection->sending_since() == begun);  // no byte was accepted
  std::string all = taken();
  CHECK(connection->flush() == Flushed::later);
  CHECK(connection->sending_since() > begun);
  while (connection->flush() == Flushed::later) all += taken();
  CHECK_FALSE(connection->sending_since());
  CHECK(all + taken() == head_of_long_text + long_text);
}

TEST_CASE_METHOD(ConnectionFixture, "a waiting writer wakes when the connection is cut") {
  std::optional<bool> flushed;
  connection->add(Kind::binary, long_text);
  begin(await_flushed(*connection, flushed));
  REQUIRE_FALSE(flushed);
  connection->abort();
  settle();
  CHECK(flushed == false);
}

TEST_CASE_METHOD(ConnectionFixture, "a waiting reader wakes when the connection is cut") {
  std::optional<Connection::Ended::How> how;
  begin(await_end(*connection, how));
  REQUIRE_FALSE(how);
  connection->abort();
  settle();
  CHECK(how == Connection::Ended::How::lost);
}

TEST_CASE_METHOD(ConnectionFixture,
                 "output to a peer that has closed is dropped, and its input is read") {
  arrives(masked(0x82, "last"));
  peer.close();
  for (int i = 0; i < 2; ++i) {
    connection->add(Kind::text, "dropped");
    CHECK(connection->flush() == Flushed::all);
    CHECK(connection->peer_closed_since());
  }
  begin(await_more(*connection));
  CHECK(read() == "last");
  CHECK(read().empty());  // the end waits for a turn
  const auto end = connection->next();
  CHECK(std::get<Connection::Ended>(*end).how == Connection::Ended::How::half_closed);
}

TEST_CASE_METHOD(ConnectionFixture, "a message is incomplete from its first byte to its last") {
  CHECK(read().empty());
  CHECK_FALSE(connection->assembling_since());  // none has begun
  arrives("\x82");
  CHECK(read().empty());
  const auto begun = connection->assembling_since();
  CHECK(begun);
  const std::string rest = masked(0x82, "message").substr(1);
  for (const char byte : rest.substr(0, rest.size() - 1)) {
    arrives({byte});
    CHECK(read().empty());
    CHECK(connection->assembling_since() == begun);
  }
  arrives(rest.substr(rest.size() - 1));
  CHECK(read() == "message");
  CHECK_FALSE(connection->assembling_since());
}

TEST_CASE_METHOD(ConnectionFixture,
                 "bytes are examined when they are read, each byte of a trickle too") {
  CHECK(read().empty());
  std::size_t seen = 0;
  for (const char byte : masked(0x82, "message")) {
    CHECK(connection->unexamined() == 0);
    CHECK(connection->examined() == seen);
    arrives({byte});
    CHECK(connection->unexamined() == 1);
    CHECK(connection->examined() == seen);
    ++seen;
    CHECK(read() == (seen == masked(0x82, "message").size() ? "message" : ""));
  }
  CHECK(connection->unexamined() == 0);
  CHECK(connection->examined() == seen);
}

TEST_CASE_METHOD(ConnectionFixture, "bytes that wait for the next turn are unexamined") {
  CHECK(read().empty());
  arrives(masked(0x82, "one") + masked(0x82, "two"));
  REQUIRE(connection->next());
  while (!connection->is_turn_over()) continue;
  CHECK_FALSE(connection->next());
  spawn(context.get_executor(), await_more(*connection));
  context.restart();
  context.run_one();  // the turn is waited for
  CHECK(connection->unexamined() == masked(0x82, "two").size());
  CHECK(connection->examined() == masked(0x82, "one").size());
  settle();
  CHECK(read() == "two");
  CHECK(connection->unexamined() == 0);
  CHECK(connection->examined() == masked(0x82, "onetwo").size() + masked(0x82, "").size());
}

TEST_CASE_METHOD(ConnectionFixture,
                 "the first input of a connection waits for a turn and later input does not") {
  for (const bool is_first : {true, false}) {
    bool begun = false, came_first = false;
    REQUIRE_FALSE(connection->next());
    begin(await_turn(*connection, begun));
    net::write(peer, net::buffer(masked(0x82, "x")));
    Turns::Turn other(context.get_executor());
    other.end_early([&] { came_first = !begun; });
    settle();
    CHECK(begun);
    CHECK(came_first == is_first);
    REQUIRE(connection->next());
  }
}

TEST_CASE_METHOD(ConnectionFixture, "the end of a lost connection waits for a turn") {
  CHECK(read().empty());
  peer.close();
  settle();
  CHECK_FALSE(connection->next());
  begin(await_more(*connection));
  const auto received = connection->next();
  REQUIRE(received);
  CHECK(std::holds_alternative<Connection::Ended>(*received));
}

TEST_CASE_METHOD(ConnectionFixture,
                 "a ping between two fragments does not extend the time of the message") {
  CHECK(read().empty());
  arrives(masked(0x02, "two "));
  CHECK(read().empty());
  const auto begun = connection->assembling_since();
  REQUIRE(begun);
  const Time received = connection->last_received();
  arrives(masked(0x89, "ping"));
  CHECK(read().empty());
  CHECK(taken() == "\x8a\4ping");
  CHECK(connection->last_received() > received);
  CHECK(connection->assembling_since() == begun);
  arrives(masked(0x80, "parts"));
  CHECK(read() == "two parts");
  arrives(masked(0x89, "ping"));  // it begins no message
  CHECK(read().empty());
  CHECK_FALSE(connection->assembling_since());
}

TEST_CASE_METHOD(ConnectionFixture,
                 "a gathered message is freed before a wait for bytes, even if pongs wait") {
  const std::string part(100, 'x');
  std::string bytes = masked(0x89, "ping") + masked(0x02, part);
  for (int i = 0; i < 150; ++i) bytes += masked(0, part);
  bytes += masked(0x80, part);
  CHECK(read().empty());
  const std::size_t before = test::allocated_bytes();
  bool goes_on = true;
  for (int i = 0; goes_on && i < 10'000; ++i) {
    arrives(bytes);
    goes_on = !read().empty();
    REQUIRE(test::allocated_bytes() < before + 8192);
  }
  CHECK_FALSE(goes_on);
}

TEST_CASE_METHOD(ConnectionFixture, "the next turn begins although pongs wait for their peer") {
  std::string pings;
  for (int i = 0; i < 150; ++i) pings += masked(0x89, std::string(125, 'x'));
  for (std::size_t sent = 1; sent > 0;) {
    boost::system::error_code full;
    sent = peer.write_some(net::buffer(pings), full);
    settle();
    CHECK(read().empty());
  }
  CHECK(connection->unexamined() == 0);  // none is examined before the peer reads
  while (!connection->is_turn_over()) continue;
  bool begun = false;
  begin(await_turn(*connection, begun));
  CHECK(begun);
  CHECK_FALSE(connection->is_turn_over());
}

TEST_CASE_METHOD(RestFixture, "bytes that came with the upgrade are read first") {
  CHECK(read().empty());
  CHECK(connection->assembling_since());
  arrives(masked(0x82, "rest, ").substr(8) + masked(0x82, "more"));
  CHECK(read() == "rest, more");
}

TEST_CASE("a socket that was closed before is a connection that has ended") {
  net::io_context context{1};
  const auto connection = open_websocket(Role::server, Socket(context), "", 1000);
  CHECK(std::holds_alternative<Connection::Ended>(*connection->next()));
}
