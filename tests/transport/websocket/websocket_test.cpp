// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/read_until.hpp>
#include <catch2/catch.hpp>
#include <set>

#include "schemas/json_commands.h"
#include "tests/support/allocations.h"
#include "tests/transport/sessions/server_fixture.h"
#include "transport/websocket/client.h"

using namespace millrace;
using Kind = Connection::Kind;

namespace {

// Sends, and returns all messages received; the last line is how the connection ended.
Task<std::vector<std::string>> converse(Executor executor, Tcp::endpoint endpoint,
                                        std::vector<std::string> frames) {
  CheckedAccess access({.host = "127.0.0.1", .port = std::to_string(endpoint.port())});
  StreamRequest request;
  auto opened = co_await open_stream(executor, std::move(access), std::move(request));
  if (!opened) co_return std::vector<std::string>{opened.error().message};
  Connection& connection = **opened;
  for (const auto& bytes : frames) co_await connection.send(Kind::binary, bytes);
  const std::string end = to_json(client_message::End{});
  co_await connection.send(Kind::text, end);

  std::vector<std::string> seen;
  for (;;) {
    const auto received = co_await connection.receive();
    if (const auto* ended = std::get_if<Connection::Ended>(&received)) {
      seen.push_back("end " + std::to_string(ended->code));
      co_return seen;
    }
    seen.emplace_back(std::get<Connection::Message>(received).text());
  }
}

// A proxy between a client and a service until the first message. Makes the answer to the upgrade
// longer, and returns the connection of the client.
Task<Socket> lengthen(Acceptor& acceptor, Tcp::endpoint service, std::string field) {
  const net::use_awaitable_t<Executor> done{};
  Socket client = co_await acceptor.async_accept(done);
  Socket server = co_await connect_to(service);
  std::string request, answer;
  co_await net::async_read_until(client, net::dynamic_buffer(request), "\r\n\r\n", done);
  co_await net::async_write(server, net::buffer(request), done);
  co_await net::async_read_until(server, net::dynamic_buffer(answer), "}", done);
  answer.insert(answer.find("\r\n") + 2, field + "\r\n");
  co_await net::async_write(client, net::buffer(answer), done);
  co_return client;
}

// The messages that the client receives: one with the answer to the upgrade, and two that are sent
// only after the client has received the first.
Task<std::string> received_one_by_one(Acceptor& acceptor, Tcp::endpoint service,
                                      std::string field) {
  using net::experimental::awaitable_operators::operator&&;
  CheckedAccess access(
      {.host = "127.0.0.1", .port = std::to_string(acceptor.local_endpoint().port())});
  auto [opened, peer] =
      co_await (open_stream(acceptor.get_executor(), std::move(access), StreamRequest()) &&
                lengthen(acceptor, service, std::move(field)));
  std::string all;
  for (const std::string_view next : {"\x82\1a", "\x82\1b", ""}) {
    const auto received = co_await (*opened)->receive();
    all += std::get<Connection::Message>(received).text().back();
    co_await net::async_write(peer, net::buffer(next), no_throw);
  }
  co_return all;
}

// The close frame of our client.
Task<std::string> close_of_a_client(Acceptor& acceptor, Tcp::endpoint service) {
  using net::experimental::awaitable_operators::operator&&;
  CheckedAccess access(
      {.host = "127.0.0.1", .port = std::to_string(acceptor.local_endpoint().port())});
  auto [opened, peer] =
      co_await (open_stream(acceptor.get_executor(), std::move(access), StreamRequest()) &&
                lengthen(acceptor, service, "X: x"));
  Connection& connection = **opened;
  const auto read_close = [](Socket& from, Connection& to) -> Task<std::string> {
    std::string frame(64, ' ');
    const auto [error, size] = co_await from.async_read_some(net::buffer(frame), no_throw);
    frame.resize(size);
    to.abort();
    co_return frame;
  };
  connection.close(1000, "bye");
  connection.flush();
  auto [frame, received] = co_await (read_close(peer, connection) && connection.receive());
  co_return frame;
}

}  // namespace

TEST_CASE_METHOD(ServerFixture, "the client and the server of this project work together") {
  const std::vector<std::string> frames{"abcd", std::string(64 * 1024, 'x'), "", "e"};
  const auto seen = run(context, converse(context.get_executor(), server.endpoint(), frames));
  REQUIRE(seen.size() == 6);
  CHECK_THAT(seen[0], Catch::Contains("ready"));
  CHECK_THAT(seen[1], Catch::Contains(R"("begin":0,"end":4,)"));
  CHECK_THAT(seen[2], Catch::Contains(R"("begin":4,"end":65540,)"));
  CHECK_THAT(seen[3], Catch::Contains(R"("begin":65540,"end":65541,)"));
  CHECK(seen[4] == R"({"type":"closed","frames":65541,"chunks":3})");
  CHECK(seen[5] == "end 1000");
}

TEST_CASE_METHOD(ServerFixture,
                 "a message above the limit ends the connection, and one at the limit does not") {
  const auto seen = run(context, converse(context.get_executor(), server.endpoint(),
                                          {std::string(64 * 1024 + 1, 'x')}));
  CHECK(seen.back() == "end 1009");
  CHECK(stats.closed[Closing::too_big].value() == 1);
  CHECK(eventually([&] { return admission.lost == std::vector<std::string>{"lost"}; }));
}

TEST_CASE_METHOD(ServerFixture, "a length larger than any memory is refused as above the limit") {
  const auto answer_to = [&](const std::string& frame) {
    const std::string answer = send(request("/v1/stream") + frame);
    return answer.substr(answer.find('}') + 1);
  };
  const std::string most = "\x7f" + std::string(6, '\xff');
  const std::string wrong(7, '\xff');  // the first bit of a length must be 0
  for (const std::string first : {"\x82", "\x81"}) {
    for (const char last : {'\xf1', '\xf2', '\xff'}) {
      CHECK(answer_to(first + "\xff" + most + last + "mask") ==
            "\x88\x15\3\xf1"
            "at most 65536 bytes");
      CHECK(answer_to(first + "\xff" + wrong + last + "mask") == "\x88\2\3\xea");  // 1002
    }
    for (const char last : {'\xf6', '\xff'})
      CHECK(answer_to(first + "\x7f" + wrong + last) == "\x88\2\3\xea");
  }
}

TEST_CASE_METHOD(ServerFixture, "a client masks its close with an unpredictable key") {
  Acceptor between = loopback(context);
  std::set<std::string> keys;
  for (int i = 0; i < 3; ++i) {
    const std::string frame = run(context, close_of_a_client(between, server.endpoint()));
    REQUIRE(frame.size() == 11);
    CHECK(frame.substr(0, 2) == "\x88\x85");
    std::string payload = frame.substr(6);
    for (std::size_t at = 0; at < payload.size(); ++at) payload[at] ^= frame[2 + at % 4];
    CHECK(payload ==
          "\3\xe8"
          "bye");
    keys.insert(frame.substr(2, 4));
  }
  CHECK(keys.size() == 3);
}

TEST_CASE_METHOD(
    ServerFixture,
    "a client receives each message at once, however long the upgrade answer before it") {
  Acceptor between = loopback(context);
  for (std::size_t length = 1; length <= 130; ++length)
    REQUIRE(run(context, received_one_by_one(between, server.endpoint(),
                                             "X:" + std::string(length, 'x'))) == "}ab");
}

TEST_CASE_METHOD(ServerFixture, "a refused client receives the reason") {
  const auto refused = [](Executor executor, Tcp::endpoint endpoint) -> Task<ConnectError> {
    CheckedAccess access({.host = "127.0.0.1", .port = std::to_string(endpoint.port())});
    StreamRequest request{.pipeline = "none"};
    auto opened = co_await open_stream(executor, std::move(access), std::move(request));
    co_return opened ? ConnectError{} : opened.error();
  };
  const auto error = run(context, refused(context.get_executor(), server.endpoint()));
  CHECK(error.status == 404);
  CHECK(
      error.message ==
      R"({"error":{"code":"unknown_pipeline","parameter":"pipeline","message":"no such pipeline"}})");

  const auto absent = run(context, refused(context.get_executor(), Tcp::endpoint()));
  CHECK(absent.status == 0);
  CHECK_THAT(absent.message, Catch::StartsWith("127.0.0.1:0: "));
}

TEST_CASE_METHOD(ServerFixture,
                 "messages of a client before its close are read, even if it reads nothing") {
  // Because of its unread results, its kernel answers our next one with a reset.
  const auto leave = [](Executor executor, Tcp::endpoint endpoint) -> Task<bool> {
    CheckedAccess access({.host = "127.0.0.1", .port = std::to_string(endpoint.port())});
    StreamRequest request;
    auto opened = co_await open_stream(executor, std::move(access), std::move(request));
    for (int i = 0; i < 100; ++i) co_await (*opened)->send(Kind::binary, "abcd");
    co_return true;
  };
  run(context, leave(context.get_executor(), server.endpoint()));
  CHECK(eventually([&] { return admission.lost == std::vector<std::string>{"lost"}; }));
  CHECK(stats.messages[MessageType::data].value() == 100);
}

TEST_CASE_METHOD(ServerFixture,
                 "in steady state messages and results need no allocation over WebSocket") {
  Socket client(context);
  client.connect(server.endpoint());
  deliver(client, request("/v1/stream"));
  const std::string message = std::string("\x82\xfe\x0c\x80\0\0\0\0", 8) + std::string(3200, 'x');
  std::array<char, 4096> results{};
  client.non_blocking(true);
  boost::system::error_code none;
  std::size_t before = 0;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    net::write(client, net::buffer(message));
    while (stats.messages[MessageType::data].value() < i || client.available() == 0) context.poll();
    client.read_some(net::buffer(results), none);
    if (i == 100) before = test::allocations();
  }
  CHECK(test::allocations() == before);
}

TEST_CASE_METHOD(ServerFixture, "a client whose messages take long does not delay others") {
  admission.work = std::chrono::microseconds(100);
  Socket many(context), one(context);
  for (Socket* client : {&many, &one}) {
    client->connect(server.endpoint());
    deliver(*client, request("/v1/stream"));
    std::array<char, 4096> answer{};
    client->read_some(net::buffer(answer));
  }
  const std::string message("\x82\x81\0\0\0\0y", 7);
  std::string all;
  for (int i = 0; i < 200; ++i) all += message;
  net::write(many, net::buffer(all));
  net::write(one, net::buffer(message));
  REQUIRE(eventually([&] { return one.available() > 0; }));
  CHECK(stats.messages[MessageType::data].value() < 50);
}

TEST_CASE("the URL of a service has a host and a port") {
  CHECK(parse_service_url("ws://here")->port == "80");
  CHECK(parse_service_url("ws://127.0.0.1:8080/")->port == "8080");
  CHECK(parse_service_url("ws://127.0.0.1:8080/v1/stream")->port == "8080");
  CHECK(parse_service_url("ws://[::1]:8080")->host == "::1");
  CHECK(parse_service_url("ws://[::1]:8080")->port == "8080");
  CHECK_FALSE(parse_service_url("ws://here")->tls);
  CHECK(parse_service_url("wss://here")->tls);
  CHECK(parse_service_url("wss://here/")->port == "443");
  for (const char* bad :
       {"", "here:8080", "https://here", "ws://", "wss://", "ws://:80",
        "ws://here:", "ws://here:http", "ws://here/path", "ws://[::1", "ws://a@b"})
    CHECK_FALSE(parse_service_url(bad));
  CHECK(parse_tcp_url("tcp://here:7")->port == "7");
  CHECK(parse_tcp_url("tcp://here")->port == "5555");
  for (const char* bad : {"", "ws://here", "tcp://", "tcp://here/"})
    CHECK_FALSE(parse_tcp_url(bad));
}

TEST_CASE("over ZeroMQ, a client may have a token, and neither headers nor authorities") {
  CHECK(tcp_token({}).empty());
  CHECK(tcp_token({.token = "abc"}) == "abc");
  CHECK_THROWS_WITH(tcp_token({.token = "secret one"}), !Catch::Contains("secret"));
  CHECK_THROWS_WITH(tcp_token({.token = "abc", .headers = {{"X", "y"}}}),
                    "headers, ca, certificate and key cannot be used over tcp://, but over wss://");
  CHECK_THROWS_AS(tcp_token({.ca = "ca.pem"}), std::invalid_argument);
}
