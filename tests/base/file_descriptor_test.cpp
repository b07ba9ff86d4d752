// SPDX-License-Identifier: Apache-2.0
#include "base/file_descriptor.h"

#include <catch2/catch.hpp>

#include "tests/support/descriptor_limit.h"

namespace millrace {
namespace {

TEST_CASE("the process gets as many descriptors as it may have") {
  rlimit most{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &most) == 0);
  const DescriptorLimit few(10);
  REQUIRE(descriptor_limit() < most.rlim_max);
  CHECK(raise_descriptor_limit() == most.rlim_max);
  CHECK(descriptor_limit() == most.rlim_max);
}

}  // namespace
}  // namespace millrace
