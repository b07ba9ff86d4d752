// SPDX-License-Identifier: Apache-2.0
#include "transport/http/server.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <set>

#include "tests/support/allocations.h"
#include "tests/transport/http/client.h"
#include "tests/transport/sessions/scarce_client.h"
#include "transport/net/listener.h"

using namespace millrace;

namespace {

struct AdminFixture {
  explicit AdminFixture(HttpServer::TimeLimits limits = {patience, patience, patience})
      : server(loopback(context), answer, large, limits) {
    server.start();
  }
  ~AdminFixture() {
    server.stop();
    context.restart();
    context.run();
  }

  std::string ask(std::string bytes) {
    return run(context, exchange(server.endpoint(), std::move(bytes)));
  }

  template <class Done>
  void run_until(Done done) {
    const Time limit = Clock::now() + patience;
    while (!done()) {
      context.restart();
      REQUIRE(context.run_one_until(limit) == 1);
    }
  }

  static HttpAnswer answer(const HttpQuery& query) {
    if (query.path() == "/fails") throw std::runtime_error("oh");
    if (query.path() == "/large") return {.type = "text/plain", .body = std::string(8 << 20, 'x')};
    return {.type = "text/plain", .body = "you asked " + query.target};
  }

  static Acceptor loopback(net::io_context& context) {
    const std::array contexts{&context};
    return std::move(
        listen_on(Tcp::endpoint(net::ip::address_v4::loopback(), 0), contexts).front());
  }

  Budget large{HttpServer::most_large};
  net::io_context context{1};
  HttpServer server;
};

// A server with short time limits.
struct ImpatientFixture : AdminFixture {
  ImpatientFixture()
      : AdminFixture({std::chrono::milliseconds(50), patience, std::chrono::milliseconds(50)}) {}

  // The answer to a client that connects after 200 others, which send `bytes` and never close.
  std::string ask_behind(std::string_view bytes) {
    const auto ask_after_others = [](Tcp::endpoint endpoint,
                                     std::string_view sent) -> Task<std::string> {
      std::vector<Socket> open;
      for (int i = 0; i < 200; ++i) {
        open.push_back(co_await connect_to(endpoint));
        co_await net::async_write(open.back(), net::buffer(sent), no_throw);
      }
      co_return co_await exchange(endpoint, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    };
    return run(context, ask_after_others(server.endpoint(), bytes));
  }
};

}  // namespace

TEST_CASE_METHOD(AdminFixture, "a GET is answered") {
  const auto reply = ask("GET /metrics?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK_THAT(reply, Catch::StartsWith("HTTP/1.1 200 OK\r\n") &&
                        Catch::Contains("Content-Type: text/plain\r\n") &&
                        Catch::Contains("Connection: close\r\n") &&
                        Catch::Contains("X-Content-Type-Options: nosniff\r\n") &&
                        Catch::EndsWith("\r\n\r\nyou asked /metrics?a=b"));
}

TEST_CASE_METHOD(AdminFixture,
                 "a request other than GET and HEAD from an allowed host is refused") {
  CHECK_THAT(ask("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Catch::StartsWith("HTTP/1.1 405"));
  CHECK_THAT(ask("OPTIONS / HTTP/1.0\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 405") && Catch::Contains("Allow: GET, HEAD\r\n"));
  CHECK_THAT(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 421"));
  CHECK_THAT(ask("GET / HTTP/1.0\r\n\r\n"), Catch::StartsWith("HTTP/1.1 200"));
  CHECK_THAT(ask("hello\r\n\r\n"), Catch::StartsWith("HTTP/1.1 400"));
  CHECK_THAT(ask("GET / HTTP/1.1\r\nA: " + std::string(33000, 'a') + "\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 431"));
}

TEST_CASE_METHOD(AdminFixture, "a HEAD is answered as the GET of the same page, without the body") {
  const std::string fields = " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const std::string path : {"/livez", "/large", "/fails"}) {
    const std::string whole = ask("GET " + path + fields), head = ask("HEAD " + path + fields);
    CHECK((head == whole.substr(0, whole.find("\r\n\r\n") + 4)));
  }
  CHECK_THAT(ask("HEAD / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 421") && Catch::EndsWith("\r\n\r\n"));
}

TEST_CASE("a listener that other machines reach answers only hosts that no page can be") {
  net::io_context context{1};
  const std::array contexts{&context};
  auto acceptors = listen_on(Tcp::endpoint(net::ip::address_v4::any(), 0), contexts);
  Budget large{HttpServer::most_large};
  HttpServer server(std::move(acceptors.front()), AdminFixture::answer, large,
                    {"millrace.example"});
  server.start();
  const Tcp::endpoint here(net::ip::address_v4::loopback(), server.endpoint().port());
  const auto status = [&](const std::string& fields) {
    return run(context, exchange(here, "GET / HTTP/1.1\r\n" + fields + "\r\n")).substr(9, 3);
  };
  for (const std::string host : {"localhost:9464", "127.0.0.1:9464", "10.1.2.3", "[fe80::1]:9464",
                                 "millrace:9464", "node-7", "Millrace.Example:9464"})
    CHECK(status("Host: " + host + "\r\n") == "200");
  for (const std::string host :
       {"evil.example:9464", "evil.example", "millrace.example.evil.example",
        "127.0.0.1.evil.example", "millrace.", "evil@millrace", "a b", "", "millrace:x", "[::1",
        "localhost, evil.example"})
    CHECK(status("Host: " + host + "\r\n") == "421");
  CHECK(status("") == "200");
  CHECK(status("Host: localhost\r\nHost: evil.example\r\n") != "200");
  server.stop();
  context.restart();
  context.run();
}

TEST_CASE_METHOD(AdminFixture, "an answer that throws is status 500, and the server continues") {
  for (int i = 0; i < 5; ++i)
    CHECK_THAT(ask("GET /fails HTTP/1.1\r\nHost: localhost\r\n\r\n"),
               Catch::StartsWith("HTTP/1.1 500"));
  CHECK_THAT(ask("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"), Catch::StartsWith("HTTP/1.1 200"));
}

TEST_CASE_METHOD(AdminFixture,
                 "a request for which there is no memory ends, and the server continues") {
  const std::string request = "GET /x HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(7000, 'a');
  for (int i = 0; i < 5; ++i) {
    std::string copy = request;
    const test::Scarcity scarcity(4096);
    CHECK(ask(std::move(copy)) == "<reset>");
  }
  CHECK_THAT(ask(request + "\r\n\r\n"), Catch::StartsWith("HTTP/1.1 200"));
}

TEST_CASE_METHOD(AdminFixture,
                 "at most four large answers are sent at a time, and small ones at any time") {
  const std::string large_one = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<Socket> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back(context).connect(server.endpoint());
    net::write(readers.back(), net::buffer(large_one));
  }
  run_until([&] { return large.taken() == 4; });
  std::set<std::string> retry_after;
  for (int i = 0; i < 40; ++i) {
    const std::string refused = ask(large_one);
    CHECK_THAT(refused, Catch::StartsWith("HTTP/1.1 503"));
    const auto value = refused.find("Retry-After: ") + 13;
    retry_after.insert(refused.substr(value, refused.find('\r', value) - value));
  }
  CHECK(std::ranges::includes(std::set<std::string>{"1", "2", "3", "4", "5"}, retry_after));
  CHECK(retry_after.size() > 1);
  CHECK_THAT(ask("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 200"));
  readers.clear();
  run_until([&] { return large.taken() == 0; });
  CHECK(ask(large_one).size() > std::size_t{8} << 20);
}

TEST_CASE_METHOD(AdminFixture,
                 "if there is no memory for a client, the server serves the next one") {
  for (std::size_t nth = 1; nth < 80; ++nth) {
    Socket client = test::connect_while_failing(context, server.endpoint(), nth);
    INFO(nth);
    client.close();
    REQUIRE_THAT(ask("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                 Catch::StartsWith("HTTP/1.1 200"));
  }
}

TEST_CASE_METHOD(ImpatientFixture,
                 "clients that send nothing are closed after their time, and others are served") {
  CHECK_THAT(ask_behind(""), Catch::StartsWith("HTTP/1.1 200"));
}

TEST_CASE_METHOD(
    ImpatientFixture,
    "clients that do not close after their answer are closed soon, and others are served") {
  CHECK_THAT(ask_behind("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 200"));
  CHECK_THAT(ask_behind("hello\r\n\r\n"), Catch::StartsWith("HTTP/1.1 200"));
}
