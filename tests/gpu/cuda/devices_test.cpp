// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/devices.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

constexpr const char* elsewhere = "GPU-00000000-1111-2222-3333-444444444444";

}  // namespace

TEST_CASE("without a rule, only the host is used") {
  Devices devices;
  CHECK((*devices.open("host"))->name() == "host");
  CHECK(devices.usable().empty());
  CHECK(devices.why_none().empty());
}

TEST_CASE("an unknown device is refused with an error that names it") {
  Devices devices;
  const auto device = devices.open("abacus");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().message == "unknown device \"abacus\"; allowed: host");
}

TEST_CASE(
    "for a device that this process does not use, slabs are on the host, and the worker copies") {
  Devices devices;
  for (const char* name : {"cuda:7", elsewhere, "MIG-1"}) {
    const auto device = std::move(*devices.open(name));
    CHECK(device->name() == name);
    CHECK_FALSE(device->device_index());
    CHECK(device->slab_format({.dtype = Element::f32}).bare);
    SlabRing ring(1, 4096);
    const auto slabs = device->attach(ring, nullptr);
    CHECK(slabs->handles() == nullptr);
    CHECK(slabs->copy(0, {}) == Copying::there);
  }
}

TEST_CASE("a listed device that does not exist is an error that names it") {
  CHECK_THROWS_WITH(Devices({.use = DeviceRule::Use::listed, .listed = {elsewhere}}),
                    Catch::Contains(elsewhere) && Catch::Contains("is not available"));
}
