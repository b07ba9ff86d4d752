// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <exception>

#include "tests/support/descriptor_limit.h"
#include "tests/workers/library/fake_service.h"
#include "workers/library/worker.h"

using namespace millrace;

TEST_CASE("a process without free descriptors cannot attach, and gets an error with the reason") {
  FakeService service;
  for (const rlim_t free : {0, 1}) {
    std::exception_ptr thrown;
    try {
      const DescriptorLimit limit(free);
      Worker worker(service.url());
    } catch (...) {
      thrown = std::current_exception();
    }
    REQUIRE(thrown);
    CHECK_THROWS_WITH(std::rethrow_exception(thrown), Catch::Contains("Too many open files"));
  }
}
