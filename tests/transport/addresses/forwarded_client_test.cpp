// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/forwarded_client.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace millrace;

namespace {

// The client of a request with these fields X-Forwarded-For, if 10.0.0.0/8 are proxies.
std::string client(const std::vector<std::string>& forwarded,
                   const std::string& peer = "10.0.0.1") {
  HttpQuery query{.method = "GET", .target = "/", .fields = {{"Host", "edge"}}};
  for (const std::string& value : forwarded) query.fields.emplace_back("x-forwarded-for", value);
  const auto proxies = ProxyList::parse({"10.0.0.0/8", "fd00::/8"});
  return forwarded_client(query, boost::asio::ip::make_address(peer), *proxies).to_string();
}

}  // namespace

TEST_CASE("a peer that is no proxy is the client, whatever it writes") {
  CHECK(client({"192.0.2.1"}, "198.51.100.9") == "198.51.100.9");
  CHECK(client({"10.0.0.2"}, "::ffff:198.51.100.9") == "198.51.100.9");
}

TEST_CASE("a proxy that names no client is the client") { CHECK(client({}) == "10.0.0.1"); }

TEST_CASE("the client is the last address that is no proxy") {
  CHECK(client({"192.0.2.1"}) == "192.0.2.1");
  CHECK(client({"192.0.2.1, 10.3.0.1, fd00::7"}) == "192.0.2.1");
  CHECK(client({"2001:db8::1"}, "::ffff:10.0.0.1") == "2001:db8::1");
}

TEST_CASE("addresses that a client has written do not count") {
  CHECK(client({"203.0.113.5, 192.0.2.1"}) == "192.0.2.1");
  CHECK(client({"10.9.9.9, 192.0.2.1, 10.0.0.2"}) == "192.0.2.1");
  CHECK(client({"garbage, 192.0.2.1"}) == "192.0.2.1");
}

TEST_CASE("several fields are one list in their order") {
  CHECK(client({"203.0.113.5", "192.0.2.1", "10.0.0.2"}) == "192.0.2.1");
  CHECK(client({"192.0.2.1,", " ,10.0.0.2, "}) == "192.0.2.1");
}

TEST_CASE("if all addresses are proxies, the first is the client") {
  CHECK(client({"10.0.0.3, 10.0.0.2"}) == "10.0.0.3");
}

TEST_CASE("an entry that is no address ends the search") {
  for (const char* entry :
       {"unknown", "_hidden", "192.0.2.1:", "192.0.2.1:70000", "[2001:db8::1", "[2001:db8::1]x",
        "[]", "192.0.2", "192.0.2.1 192.0.2.2", "fe80::1%1", "0.0.0.0", "::", "\"192.0.2.1\""}) {
    CAPTURE(entry);
    CHECK(client({std::string("203.0.113.5, ") + entry + ", 10.0.0.2"}) == "10.0.0.2");
  }
}

TEST_CASE("an entry may have a port, and an IPv4 address may be mapped") {
  CHECK(client({"192.0.2.1:40000"}) == "192.0.2.1");
  CHECK(client({"[2001:db8::1]:443"}) == "2001:db8::1");
  CHECK(client({"[2001:db8::1]"}) == "2001:db8::1");
  CHECK(client({"::ffff:192.0.2.1"}) == "192.0.2.1");
  CHECK(client({"192.0.2.1, ::ffff:10.0.0.2"}) == "192.0.2.1");
}
