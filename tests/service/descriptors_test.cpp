// SPDX-License-Identifier: Apache-2.0
#include "service/descriptors.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "tests/support/descriptor_limit.h"

using namespace millrace;

TEST_CASE("half of the descriptors may be clients, and some of those have no stream yet") {
  CHECK(client_sockets(20'000) == 10'000);
  CHECK(client_streams(20'000) == 9'488);
  CHECK(client_streams(2'048) == 512);
  CHECK(client_sockets(256) == 128);
  CHECK(client_streams(256) == 64);
}

TEST_CASE("the process gets as many descriptors as it may have") {
  rlimit most{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &most) == 0);
  const DescriptorLimit few(10);
  REQUIRE(descriptor_limit() < most.rlim_max);
  CHECK(raise_descriptor_limit() == most.rlim_max);
  CHECK(descriptor_limit() == most.rlim_max);
}
