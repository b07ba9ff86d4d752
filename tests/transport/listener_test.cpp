// SPDX-License-Identifier: Apache-2.0
#include "transport/listener.h"

#include <array>
#include <catch2/catch.hpp>

using namespace millrace;

namespace {

const Tcp::endpoint any_port(net::ip::address_v4::loopback(), 0);

}  // namespace

TEST_CASE("several threads listen on one address") {
  net::io_context first(1), second(1);
  const std::array contexts{&first, &second};
  const auto acceptors = listen_on(any_port, contexts);
  REQUIRE(acceptors.size() == 2);
  CHECK(acceptors[0].local_endpoint().port() != 0);
  CHECK(acceptors[0].local_endpoint() == acceptors[1].local_endpoint());
}

TEST_CASE("an address in use is an error that names it, even where its owner would share it") {
  net::io_context context(1);
  const std::array contexts{&context};
  const auto owner = listen_on(any_port, contexts);
  const auto endpoint = owner[0].local_endpoint();
  CHECK_THROWS_WITH(
      listen_on(endpoint, contexts),
      "cannot listen on 127.0.0.1:" + std::to_string(endpoint.port()) + ": Address already in use");
}

TEST_CASE("an address is free again at once") {
  net::io_context context(1);
  const std::array contexts{&context};
  const auto endpoint = listen_on(any_port, contexts)[0].local_endpoint();
  CHECK_NOTHROW(listen_on(endpoint, contexts));
}
