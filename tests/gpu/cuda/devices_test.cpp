// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/devices.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

constexpr const char* elsewhere = "GPU-00000000-1111-2222-3333-444444444444";

}  // namespace

TEST_CASE("without a rule there is the host") {
  Devices devices;
  CHECK((*devices.open("host"))->name() == "host");
  CHECK(devices.usable().empty());
  CHECK(devices.why_none().empty());
}

TEST_CASE("an unknown device is refused with a sentence that names it") {
  Devices devices;
  const auto device = devices.open("abacus");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().message == "unknown device \"abacus\"; allowed: host");
}

TEST_CASE("a device that this process does not use is the worker's own, with slabs on the host") {
  Devices devices;
  for (const char* name : {"cuda:7", elsewhere, "MIG-1"}) {
    const auto device = std::move(*devices.open(name));
    CHECK(device->name() == name);
    CHECK_FALSE(device->place());
    CHECK(device->slab_format({.dtype = Element::f32}).bare);
    SlabRing ring(1, 4096);
    const auto slabs = device->attach(ring, nullptr);
    CHECK(slabs->handles() == nullptr);
    CHECK(slabs->copy(0, {}) == Copying::there);
  }
}

TEST_CASE("a listed device that is not there ends the start with a sentence") {
  CHECK_THROWS_WITH(Devices({.use = DeviceRule::Use::listed, .listed = {elsewhere}}),
                    Catch::Contains(elsewhere) && Catch::Contains("is not there"));
}
