// SPDX-License-Identifier: Apache-2.0
#include "service/config/descriptors.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>

using namespace millrace;

TEST_CASE("some descriptors are reserved for workers, and some for clients without a stream") {
  CHECK(client_sockets(20'000) == 18'976);
  CHECK(client_streams(20'000) == 18'464);
  CHECK(client_sockets(1'048'576) == 1'048'576 - 1024);
}

TEST_CASE("if descriptors are few, clients get half of them") {
  CHECK(client_sockets(2'048) == 1'024);
  CHECK(client_streams(2'048) == 512);
  CHECK(client_sockets(256) == 128);
  CHECK(client_streams(256) == 64);
}

TEST_CASE("ZeroMQ connections take at most half of the sockets of clients") {
  for (const std::uint64_t descriptors : {1'024, 20'000, 524'288})
    for (const std::uint64_t streams : {1, 50, 10'000, 400'000})
      CHECK(zeromq_connections(descriptors, streams) <= sockets_for(streams, descriptors) / 2);
  CHECK(zeromq_connections(524'288, 10'000) == 5'256);
  CHECK(zeromq_connections(2'048, 10'000) == 512);
  CHECK(zeromq_connections(524'288, 1) == 1);
}

TEST_CASE("the number of descriptors that is reported as needed is enough") {
  for (const std::uint64_t streams : {1, 50, 511, 512, 513, 1'000, 10'000, 60'000}) {
    CHECK(client_streams(descriptors_for(streams)) == streams);
    CHECK(client_streams(descriptors_for(streams) - 4) < streams);
  }
}
