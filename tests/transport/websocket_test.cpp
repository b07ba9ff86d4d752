// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>
#include <future>

#include "tests/transport/server_fixture.h"
#include "transport/client.h"
#include "transport/client_messages.h"

using namespace millrace;
using Kind = Connection::Kind;

namespace {

// Sends, and returns all that comes; the last line is how it ended.
Task<std::vector<std::string>> converse(Executor executor, Tcp::endpoint endpoint,
                                        std::vector<std::string> frames) {
  ServiceUrl url{.host = "127.0.0.1", .port = std::to_string(endpoint.port())};
  StreamRequest request;
  auto opened = co_await open_stream(executor, std::move(url), std::move(request));
  if (!opened) co_return std::vector<std::string>{opened.error().message};
  Connection& connection = **opened;
  for (const auto& bytes : frames) co_await connection.send(Kind::binary, bytes, true);
  const std::string end = to_json(client_message::End{});
  co_await connection.send(Kind::text, end, false);

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

}  // namespace

TEST_CASE_METHOD(ServerFixture, "our client and our server understand each other") {
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
                 "a message over the limit ends the connection, one at it does not") {
  const auto seen = run(context, converse(context.get_executor(), server.endpoint(),
                                          {std::string(64 * 1024 + 1, 'x')}));
  CHECK(seen.back() == "end 1009");
  CHECK(stats.closed[Closing::too_big].value() == 1);
  CHECK(eventually([&] { return door.lost == std::vector<std::string>{"lost"}; }));
}

TEST_CASE_METHOD(ServerFixture, "a client learns why it was refused") {
  const auto refused = [](Executor executor, Tcp::endpoint endpoint) -> Task<ConnectError> {
    ServiceUrl url{.host = "127.0.0.1", .port = std::to_string(endpoint.port())};
    StreamRequest request{.pipeline = "none"};
    auto opened = co_await open_stream(executor, std::move(url), std::move(request));
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
                 "what a client sent before it hung up is read, though it reads nothing") {
  // Its unread results make its kernel answer our next one with a reset.
  const auto leave = [](Executor executor, Tcp::endpoint endpoint) -> Task<bool> {
    ServiceUrl url{.host = "127.0.0.1", .port = std::to_string(endpoint.port())};
    StreamRequest request;
    auto opened = co_await open_stream(executor, std::move(url), std::move(request));
    for (int i = 0; i < 100; ++i) co_await (*opened)->send(Kind::binary, "abcd", i < 99);
    co_return true;
  };
  run(context, leave(context.get_executor(), server.endpoint()));
  CHECK(eventually([&] { return door.lost == std::vector<std::string>{"lost"}; }));
  CHECK(stats.messages[MessageType::data].value() == 100);
}

TEST_CASE("the url of a service is host and port") {
  CHECK(parse_service_url("ws://here")->port == "80");
  CHECK(parse_service_url("ws://127.0.0.1:8080/")->port == "8080");
  CHECK(parse_service_url("ws://127.0.0.1:8080/v1/stream")->port == "8080");
  CHECK(parse_service_url("ws://[::1]:8080")->host == "::1");
  CHECK(parse_service_url("ws://[::1]:8080")->port == "8080");
  for (const char* bad : {"", "here:8080", "wss://here", "ws://", "ws://:80", "ws://here:",
                          "ws://here:http", "ws://here/path", "ws://[::1", "ws://a@b"})
    CHECK_FALSE(parse_service_url(bad));
  CHECK(parse_tcp_url("tcp://here:7")->port == "7");
  CHECK(parse_tcp_url("tcp://here")->port == "5555");
  for (const char* bad : {"", "ws://here", "tcp://", "tcp://here/"})
    CHECK_FALSE(parse_tcp_url(bad));
}

TEST_CASE_METHOD(ServerFixture, "an independent client is a client") {
  const std::string command = "/usr/bin/python3 " MILLRACE_INDEPENDENT_CLIENT " " +
                              std::to_string(server.endpoint().port());
  auto python = std::async(std::launch::async, [&] {
    const int status = std::system(command.c_str());
    net::post(context, [] {});
    return status;
  });
  using namespace std::chrono_literals;
  CHECK(eventually([&] { return python.wait_for(0s) == std::future_status::ready; }));
  CHECK(python.get() == 0);
}
