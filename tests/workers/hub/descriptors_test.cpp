// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/support/descriptor_limit.h"
#include "tests/workers/hub/door_fixture.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("without descriptors workers wait, and come in when there are some again") {
  Door door;
  RawWorker(door).attach();
  RawWorker worker(door);
  worker.send(Hello{.name = "w"});
  {
    const DescriptorLimit none(0);
    door.run_until([&] { return door.logged("workers cannot connect"); });
  }
  (void)worker.take<Welcome>();
}
