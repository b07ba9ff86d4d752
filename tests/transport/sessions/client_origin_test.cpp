// SPDX-License-Identifier: Apache-2.0
// The limits on connections of each address, of direct clients and of those behind proxies.
#include "transport/sessions/client_origin.h"

#include <catch2/catch.hpp>

#include "tests/transport/sessions/server_fixture.h"

using namespace millrace;
using namespace std::string_literals;
using Catch::Contains;
using Catch::StartsWith;

namespace {

constexpr Time start{std::chrono::hours(1)};

const std::string end_at_once = "\x88\x82\0\0\0\0\x03\xe8"s;

ProxyList proxies(const std::vector<std::string>& networks) { return *ProxyList::parse(networks); }

// Each address may have one connection. All its clients come from a proxy on loopback.
struct EdgeFixture : ServerFixture {
  EdgeFixture() : ServerFixture({}, {.connections = 1}, proxies({"127.0.0.0/8"})) {}

  // The answer to an upgrade behind `before`, with the connection, which stays open.
  std::string upgrade(Socket& client, const std::string& before, const std::string& fields = {}) {
    client.connect(server.endpoint());
    deliver(client, before + request("/v1/stream", fields));
    std::string answer(4096, '\0');
    boost::system::error_code closed;
    client.non_blocking(true);
    answer.resize(client.read_some(net::buffer(answer), closed));
    return answer;
  }
};

// A header of the PROXY protocol that names this IPv4 address, and port 40000.
std::string proxy_header(const std::string& address) {
  std::string header = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"s;
  for (const auto byte : net::ip::make_address_v4(address).to_bytes())
    header += static_cast<char>(byte);
  return header + "\x7f\0\0\x01\x9c\x40\0\x50"s;
}

Tcp::endpoint at(const std::string& address) { return {net::ip::make_address(address), 40000}; }

}  // namespace

TEST_CASE("a direct client has a place of its address, but not on loopback") {
  ClientGate gate{.sockets = Budget(10), .addresses = AddressLimits({.connections = 1})};
  ClientOrigin first(at("192.0.2.1"), gate), second(at("::ffff:192.0.2.1"), gate);
  CHECK(first.text() == "192.0.2.1:40000");
  CHECK_FALSE(first.take_place(start));
  CHECK_FALSE(first.take_place(start));  // it has it already
  CHECK(second.take_place(start) == AddressLimits::Fault::connections);
  { const ClientOrigin ended = std::move(first); }
  CHECK_FALSE(second.take_place(start));
  for (const char* local : {"127.0.0.1", "127.0.0.1", "::1", "::1", "::ffff:127.0.0.1"}) {
    ClientOrigin client(at(local), gate);
    CHECK_FALSE(client.take_place(start));
    CHECK(gate.addresses.addresses() == 1);
  }
}

TEST_CASE("a proxy needs no place, and the client that it names needs one") {
  ClientGate gate{.sockets = Budget(10),
                  .addresses = AddressLimits({.connections = 1}),
                  .proxies = proxies({"10.0.0.0/8"})};
  ClientOrigin silent(at("10.0.0.1"), gate);
  CHECK(silent.is_proxy());
  CHECK_FALSE(silent.take_place(start));
  CHECK(gate.addresses.addresses() == 0);

  ClientOrigin named(at("10.0.0.1"), gate), loopback(at("10.0.0.1"), gate);
  named.set_client(at("192.0.2.1"));
  CHECK(named.text() == "192.0.2.1:40000");
  CHECK_FALSE(named.is_proxy());
  CHECK_FALSE(named.take_place(start));
  loopback.set_client(at("127.0.0.1"));
  CHECK_FALSE(loopback.take_place(start));
  CHECK(gate.addresses.addresses() == 2);
}

TEST_CASE("a request through two kinds of proxies names its client") {
  ClientGate gate{.sockets = Budget(10), .proxies = proxies({"10.0.0.0/8"})};
  ClientOrigin client(at("10.0.0.1"), gate);
  client.set_client(at("10.0.0.2"));  // the balancer names another proxy
  CHECK(client.is_proxy());
  client.set_client(HttpQuery{
      .method = "GET", .target = "/", .fields = {{"X-Forwarded-For", "203.0.113.1, 192.0.2.1"}}});
  CHECK(client.text() == "192.0.2.1");
}

TEST_CASE_METHOD(EdgeFixture, "behind a proxy, a client too many receives 429, others do not") {
  Socket first(context), second(context), other(context), again(context);
  CHECK_THAT(upgrade(first, "", "X-Forwarded-For: 192.0.2.1\r\n"), StartsWith("HTTP/1.1 101 "));
  CHECK_THAT(upgrade(second, "", "X-Forwarded-For: 203.0.113.1, 192.0.2.1\r\n"),
             StartsWith("HTTP/1.1 429 ") && Contains("\r\nRetry-After: ") &&
                 Contains(R"("code":"too_fast")"));
  CHECK(stats.refused[Refusal::limit_address].value() == 1);
  CHECK_THAT(upgrade(other, "", "X-Forwarded-For: 192.0.2.2\r\n"), StartsWith("HTTP/1.1 101 "));
  first.close();
  REQUIRE(eventually([&] { return admission.lost.size() == 1; }));
  CHECK_THAT(upgrade(again, "", "X-Forwarded-For: 192.0.2.1\r\n"), StartsWith("HTTP/1.1 101 "));
}

TEST_CASE_METHOD(EdgeFixture, "a header of the PROXY protocol names the client") {
  Socket first(context), second(context), other(context);
  CHECK_THAT(upgrade(first, proxy_header("192.0.2.1")), StartsWith("HTTP/1.1 101 "));
  CHECK(admission.requests.size() == 1);
  CHECK_THAT(upgrade(second, proxy_header("192.0.2.1"), "X-Forwarded-For: 192.0.2.9\r\n"),
             StartsWith("HTTP/1.1 429 "));
  CHECK_THAT(upgrade(other, proxy_header("192.0.2.2")), StartsWith("HTTP/1.1 101 "));
  CHECK(stats.refused[Refusal::limit_address].value() == 1);
}

TEST_CASE_METHOD(EdgeFixture, "a header of the PROXY protocol may arrive in any pieces") {
  Socket client(context);
  client.connect(server.endpoint());
  const std::string bytes = proxy_header("192.0.2.1") + request("/v1/stream") + end_at_once;
  for (std::size_t at = 0; at < bytes.size(); at += 7) deliver(client, bytes.substr(at, 7));
  CHECK_THAT(run(context, read_all(client)), StartsWith("HTTP/1.1 101 "));
}

TEST_CASE_METHOD(EdgeFixture, "a malformed header of the PROXY protocol ends the connection") {
  CHECK(send("\r\nGET / HTTP/1.1\r\n\r\n") == "<reset>");
  CHECK(stats.refused[Refusal::handshake].value() == 1);
}

TEST_CASE_METHOD(EdgeFixture, "an unfinished header of the PROXY protocol ends with its time") {
  Socket client(context);
  client.connect(server.endpoint());
  deliver(client, proxy_header("192.0.2.1").substr(0, 20));
  CHECK(scope.connections() == 1);
  scope.sweep(Clock::now() + std::chrono::seconds(11));
  CHECK(eventually([&] { return scope.connections() == 0; }));
  CHECK(stats.refused[Refusal::handshake].value() == 1);
}

TEST_CASE_METHOD(ServerFixture, "the word of a client that is no proxy does not count") {
  CHECK_THAT(send(proxy_header("192.0.2.1") + request("/v1/stream")), StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(send(request("/v1/stream", "X-Forwarded-For: 192.0.2.1\r\n") + end_at_once),
             StartsWith("HTTP/1.1 101 "));
}
