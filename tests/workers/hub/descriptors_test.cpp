// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/support/descriptor_limit.h"
#include "tests/workers/hub/service_fixture.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("without free descriptors workers wait, and attach when descriptors are free again") {
  HubService service;
  RawWorker(service).attach();
  RawWorker worker(service);
  worker.send(Hello{.name = "w"});
  {
    const DescriptorLimit none(0);
    service.run_until([&] { return service.logged("workers cannot connect"); });
  }
  (void)worker.receive<Welcome>();
}
