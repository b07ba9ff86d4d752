// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/address_limits.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

using namespace millrace;
using namespace std::chrono_literals;

namespace {

using Fault = AddressLimits::Fault;
using Connections = std::vector<AddressLimits::Connection>;

constexpr Time start{1h};

IpAddress address_of(const std::string& text) { return boost::asio::ip::make_address(text); }

// The number of connections that are accepted out of `tries`.
int connect(AddressLimits& limits, Connections& open, const std::string& address, int tries,
            Time now = start) {
  int accepted = 0;
  for (int i = 0; i < tries; ++i) {
    auto connection = limits.connect(address_of(address), now);
    if (!connection) continue;
    open.push_back(std::move(*connection));
    ++accepted;
  }
  return accepted;
}

}  // namespace

TEST_CASE("an address has a number of connections, and another one when one of them ends") {
  AddressLimits limits({.connections = 3});
  Connections open;
  CHECK(connect(limits, open, "192.0.2.1", 5) == 3);
  const auto refused = limits.connect(address_of("192.0.2.1"), start);
  CHECK((refused.has_error() && refused.error() == Fault::connections));
  CHECK(connect(limits, open, "192.0.2.2", 5) == 3);
  open.erase(open.begin());
  CHECK(connect(limits, open, "192.0.2.1", 5) == 1);
}

TEST_CASE("an address opens connections at a rate, and a refused one costs nothing") {
  AddressLimits limits({.opens = RateRule(20, 40)});
  Connections open;
  CHECK(connect(limits, open, "192.0.2.1", 100) == 40);
  open.clear();
  const auto refused = limits.connect(address_of("192.0.2.1"), start);
  REQUIRE(refused.has_error());
  CHECK(refused.error() == Fault::opens);
  CHECK(connect(limits, open, "192.0.2.2", 100) == 40);
  CHECK(connect(limits, open, "192.0.2.1", 100, start + 1s) == 20);
}

TEST_CASE("a connection over the limit of connections does not count for the rate") {
  AddressLimits limits({.connections = 1, .opens = RateRule(1, 2)});
  Connections open;
  CHECK(connect(limits, open, "192.0.2.1", 100) == 1);
  open.clear();
  CHECK(connect(limits, open, "192.0.2.1", 100) == 1);
}

TEST_CASE("all addresses together open connections at a rate, and one that is refused takes none") {
  AddressLimits limits({.connections = 1, .accepts = RateRule(200, 4)});
  Connections open;
  CHECK(connect(limits, open, "192.0.2.1", 100) == 1);
  for (const char* other : {"192.0.2.2", "192.0.2.3", "2001:db8::1", "192.0.2.4", "192.0.2.5"})
    connect(limits, open, other, 1);
  CHECK(open.size() == 4);
  const auto refused = limits.connect(address_of("192.0.2.6"), start);
  REQUIRE(refused.has_error());
  CHECK(refused.error() == Fault::accepts);
  CHECK(connect(limits, open, "192.0.2.6", 1, start + 5ms) == 1);
}

TEST_CASE("a host has all addresses of its IPv6 network, and only one of IPv4") {
  AddressLimits limits({.connections = 2});
  Connections open;
  CHECK(connect(limits, open, "2001:db8::1", 1) == 1);
  CHECK(connect(limits, open, "2001:db8::ffff:0:0:1", 5) == 1);
  CHECK(connect(limits, open, "2001:db8:0:1::1", 5) == 2);
  CHECK(connect(limits, open, "192.0.2.1", 1) == 1);
  CHECK(connect(limits, open, "::ffff:192.0.2.1", 5) == 1);
  CHECK(connect(limits, open, "::c000:201", 5) == 2);
}

TEST_CASE("without limits nothing is counted") {
  AddressLimits limits;
  Connections open;
  CHECK(connect(limits, open, "192.0.2.1", 1000) == 1000);
  CHECK(limits.addresses() == 0);
}

TEST_CASE("addresses that are not used are forgotten, others never") {
  AddressLimits limits({.connections = 2, .opens = RateRule(1, 3)});
  Connections held;
  CHECK(connect(limits, held, "2001:db8:ffff::", 2) == 2);
  for (int i = 0; i < 10'000; ++i) {
    Connections open;
    const std::string address = "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256);
    CHECK(connect(limits, open, address, 1, start + i * 10ms) == 1);
    // An address is remembered for a second, and 100 are new in a second.
    REQUIRE(limits.addresses() <= 140);
  }
  CHECK(connect(limits, held, "2001:db8:ffff::", 1, start + 200s) == 0);
}

TEST_CASE("threads together get no more connections than the limit") {
  AddressLimits limits({.connections = 100});
  std::atomic<int> most = 0;
  {
    std::atomic<int> now_open = 0;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&] {
        for (int turn = 0; turn < 100; ++turn) {
          Connections open;
          const int count = connect(limits, open, "192.0.2.1", 60);
          const int all = now_open += count;
          for (int seen = most; all > seen && !most.compare_exchange_weak(seen, all);) {
          }
          now_open -= count;
        }
      });
  }
  CHECK(most <= 100);
  Connections open;
  CHECK(connect(limits, open, "192.0.2.1", 200) == 100);
}
