// SPDX-License-Identifier: Apache-2.0
#include "transport/http_server.h"

#include <array>
#include <catch2/catch.hpp>

#include "tests/support/allocations.h"
#include "tests/transport/http_client.h"
#include "transport/listener.h"

using namespace millrace;

namespace {

struct AdminFixture {
  explicit AdminFixture(Duration limit = patience) : server(loopback(context), answer, limit) {
    net::co_spawn(context, server.serve(), [](std::exception_ptr) {});
  }
  ~AdminFixture() {
    server.stop();
    context.restart();
    context.run();
  }

  std::string ask(std::string bytes) {
    return run(context, exchange(server.endpoint(), std::move(bytes)));
  }

  static HttpAnswer answer(const HttpQuery& query) {
    if (query.path() == "/fails") throw std::runtime_error("oh");
    return {.type = "text/plain", .body = "you asked " + query.target};
  }

  static Acceptor loopback(net::io_context& context) {
    const std::array contexts{&context};
    return std::move(
        listen_on(Tcp::endpoint(net::ip::address_v4::loopback(), 0), contexts).front());
  }

  net::io_context context{1};
  HttpServer server;
};

// Gives nobody long.
struct ImpatientFixture : AdminFixture {
  ImpatientFixture() : AdminFixture(std::chrono::milliseconds(50)) {}
};

}  // namespace

TEST_CASE_METHOD(AdminFixture, "a GET is answered") {
  const auto reply = ask("GET /metrics?a=b HTTP/1.1\r\nHost: here\r\n\r\n");
  CHECK_THAT(reply, Catch::StartsWith("HTTP/1.1 200 OK\r\n") &&
                        Catch::Contains("Content-Type: text/plain\r\n") &&
                        Catch::Contains("Connection: close\r\n") &&
                        Catch::EndsWith("\r\n\r\nyou asked /metrics?a=b"));
}

TEST_CASE_METHOD(AdminFixture, "anything else is refused") {
  CHECK_THAT(ask("POST / HTTP/1.1\r\nHost: here\r\n\r\n"), Catch::StartsWith("HTTP/1.1 405"));
  CHECK_THAT(ask("hello\r\n\r\n"), Catch::StartsWith("HTTP/1.1 400"));
  CHECK_THAT(ask("GET / HTTP/1.1\r\nA: " + std::string(9000, 'a') + "\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 431"));
}

TEST_CASE_METHOD(AdminFixture, "an answer that throws is our fault, and the server goes on") {
  for (int i = 0; i < 5; ++i)
    CHECK_THAT(ask("GET /fails HTTP/1.1\r\nHost: here\r\n\r\n"), Catch::StartsWith("HTTP/1.1 500"));
  CHECK_THAT(ask("GET /x HTTP/1.1\r\nHost: here\r\n\r\n"), Catch::StartsWith("HTTP/1.1 200"));
}

TEST_CASE_METHOD(AdminFixture,
                 "a request that there is no memory for ends, and the server goes on") {
  const std::string request = "GET /x HTTP/1.1\r\nHost: here\r\nA: " + std::string(7000, 'a');
  for (int i = 0; i < 5; ++i) {
    std::string copy = request;
    const test::Scarcity scarcity(4096);
    CHECK(ask(std::move(copy)) == "<reset>");
  }
  CHECK_THAT(ask(request + "\r\n\r\n"), Catch::StartsWith("HTTP/1.1 200"));
}

TEST_CASE_METHOD(ImpatientFixture, "clients that say nothing make room when their time is over") {
  const auto crowd = [](Tcp::endpoint endpoint) -> Task<std::string> {
    std::vector<Socket> silent;
    for (int i = 0; i < 4; ++i) silent.push_back(co_await connect_to(endpoint));
    co_return co_await exchange(endpoint, "GET / HTTP/1.1\r\nHost: here\r\n\r\n");
  };
  CHECK_THAT(run(context, crowd(server.endpoint())), Catch::StartsWith("HTTP/1.1 200"));
}
