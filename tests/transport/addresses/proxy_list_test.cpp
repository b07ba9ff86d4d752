// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/proxy_list.h"

#include <catch2/catch.hpp>
#include <string>

using namespace millrace;

namespace {

IpAddress at(const std::string& text) { return boost::asio::ip::make_address(text); }

// ipaddress.ip_address(address) in ipaddress.ip_network(network) of Python 3.11
struct Golden {
  const char* network;
  const char* address;
  bool contains;
};
constexpr Golden goldens[] = {
    {"10.0.0.0/8", "10.255.255.255", true},
    {"10.0.0.0/8", "11.0.0.0", false},
    {"10.0.0.0/9", "10.128.0.0", false},
    {"0.0.0.0/0", "255.255.255.255", true},
    {"192.0.2.7/32", "192.0.2.7", true},
    {"192.0.2.7/32", "192.0.2.6", false},
    {"192.0.2.6/31", "192.0.2.7", true},
    {"192.0.2.7", "192.0.2.7", true},
    {"fd00::/8", "fdff::1", true},
    {"fd00::/8", "fe00::1", false},
    {"2001:db8:1::/48", "2001:db8:1::", true},
    {"2001:db8:1::/48", "2001:db8:2::", false},
    {"::1/128", "::1", true},
    {"::1", "::2", false},
    {"10.0.0.0/8", "::a00:1", false},
    {"2001:db8::/33", "2001:db8:8000::", false},
};

}  // namespace

TEST_CASE("networks contain the addresses that they contain for Python") {
  for (const Golden& golden : goldens) {
    CAPTURE(golden.network, golden.address);
    const auto list = ProxyList::parse({golden.network});
    REQUIRE(list);
    CHECK(list->contains(at(golden.address)) == golden.contains);
  }
}

TEST_CASE("an IPv4 address that is mapped into IPv6 is the same address") {
  const auto list = ProxyList::parse({"10.0.0.0/8"});
  REQUIRE(list);
  CHECK(list->contains(at("::ffff:10.1.2.3")));
  CHECK_FALSE(list->contains(at("::ffff:11.1.2.3")));
  CHECK(unmapped(at("::ffff:192.0.2.1")) == at("192.0.2.1"));
  CHECK(unmapped(at("2001:db8::1")) == at("2001:db8::1"));
}

TEST_CASE("the scope of a link-local address does not count") {
  const auto list = ProxyList::parse({"fe80::/10"});
  REQUIRE(list);
  CHECK(list->contains(at("fe80::1%1")));
}

TEST_CASE("each of several networks counts, and an empty list contains nothing") {
  const auto list = ProxyList::parse({"10.0.0.0/8", "fd00::/8"});
  REQUIRE(list);
  CHECK(list->contains(at("10.0.0.1")));
  CHECK(list->contains(at("fd00::1")));
  CHECK_FALSE(ProxyList().contains(at("10.0.0.1")));
}

TEST_CASE("a text that is no network is invalid") {
  for (const char* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8 ",
                           "10.0.0/8", "10.1.0.0/8", "fd00::/129", "fd00::1/64", "fe80::1%eth0",
                           "localhost", "10.0.0.0/8/8", "10.0.0.0/65536"}) {
    CAPTURE(text);
    CHECK_FALSE(ProxyList::parse({"192.0.2.1", text}));
  }
  CHECK_FALSE(ProxyList::parse({std::string("10.0.0.1\0", 9)}));
}
