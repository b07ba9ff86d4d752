// SPDX-License-Identifier: Apache-2.0
// Uses simulated devices.
#include "service/watch/device_watch.h"

#include <catch2/catch.hpp>

#include "tests/service/log/logged.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"

using namespace millrace;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using test::Logged;
namespace simulated = test::simulated_cuda;

namespace {

DeviceRule listing(std::vector<std::string> names) {
  return {.use = DeviceRule::Use::listed, .listed = std::move(names)};
}

// A machine with this number of devices.
struct DeviceMachine {
  explicit DeviceMachine(int devices) { simulated::set_devices(devices); }
  ~DeviceMachine() { simulated::reset(); }
};

std::string error_for(const DeviceRule& rule) {
  Logged logged;
  try {
    const DeviceWatch watch(rule, *logged.log);
    return "no error";
  } catch (const DeviceFailure& failure) {
    CHECK(failure.fault() == DeviceFault::other);
    return failure.what();
  }
}

}  // namespace

TEST_CASE("the log lists the devices") {
  const DeviceMachine machine(2);
  Logged logged;
  DeviceWatch watch({}, *logged.log);
  watch.log_devices();
  CHECK(watch.failures().empty());
  REQUIRE(watch.stats().size() == 2);
  CHECK(watch.stats()[0].healthy.value() == 1);
  CHECK(watch.stats()[1].healthy.value() == 1);
  CHECK_THAT(logged.text(), Contains("level=info event=device device=cuda:0 uuid=GPU-") &&
                                Contains("level=info event=device device=cuda:1 uuid=GPU-") &&
                                EndsWith(" memory=\"1 GiB\"\n"));
}

TEST_CASE("without a device, the log has the reason, once") {
  const DeviceMachine machine(0);
  Logged logged;
  DeviceWatch({}, *logged.log).log_devices();
  const std::string text = logged.text();
  CHECK_THAT(text, Contains("level=info event=\"no device\" why=\"no CUDA device"));
  CHECK(text.find("no device") == text.rfind("no device"));
}

TEST_CASE("with devices = \"host\" no device is logged, and the driver is not called") {
  const DeviceMachine machine(2);
  Logged logged;
  DeviceWatch watch({.use = DeviceRule::Use::host}, *logged.log);
  watch.log_devices();
  CHECK(watch.stats().empty());
  CHECK(logged.text().empty());
  CHECK(simulated::calls("cudaGetDeviceCount") == 0);
}

TEST_CASE("a listed device that does not exist, or is listed twice, is an error") {
  const DeviceMachine machine(1);
  CHECK_THAT(error_for(listing({"cuda:1"})),
             Contains("device \"cuda:1\" is not available: the devices are host, cuda:0 (GPU-"));
  Logged logged;
  const std::string uuid = DeviceWatch({}, *logged.log).devices().usable().front().uuid;
  CHECK(error_for(listing({uuid})) == "no error");
  CHECK(error_for(listing({"cuda:0", uuid})) == "device \"" + uuid + "\" is listed twice");
}

TEST_CASE("without a driver a listed device does not exist") {
  const DeviceMachine machine(1);
  constexpr int no_driver = 35;  // cudaErrorInsufficientDriver
  simulated::fail("cudaGetDeviceCount", no_driver);
  CHECK_THAT(error_for(listing({"cuda:0"})),
             Contains("device \"cuda:0\" is not available: ") && Contains("driver"));
}

TEST_CASE("a failed device is logged once, and is not healthy") {
  const DeviceMachine machine(2);
  Logged logged;
  DeviceWatch watch({}, *logged.log);
  watch.failed(1, {DeviceFault::ecc, "copying to the device: uncorrectable ECC error"});
  watch.failed(1, {DeviceFault::other, "again"});
  CHECK(watch.failures() == std::vector<std::string>{"device cuda:1 has failed"});
  CHECK(watch.stats()[0].healthy.value() == 1);
  CHECK(watch.stats()[1].healthy.value() == 0);
  CHECK(logged.stats.logged[LogLevel::error].value() == 1);
  CHECK_THAT(logged.text(), EndsWith("level=error event=\"device failed\" device=cuda:1 error=ecc "
                                     "why=\"copying to the device: uncorrectable ECC error\"\n"));
}

TEST_CASE("a second device that fails right after the first is logged too") {
  const DeviceMachine machine(2);
  Logged logged;
  DeviceWatch watch({}, *logged.log);
  watch.failed(1, {DeviceFault::lost, "a reset"});
  watch.failed(0, {DeviceFault::lost, "a reset"});
  CHECK(watch.failures().size() == 2);
  CHECK_THAT(logged.text(), Contains("device=cuda:1 error=lost why=\"a reset\"\n") &&
                                Contains("device=cuda:0 error=lost why=\"a reset\"\n"));
}
