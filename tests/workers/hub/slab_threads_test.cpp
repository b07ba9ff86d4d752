// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/slab_threads.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <thread>

#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/workers/hub/service_fixture.h"
#include "workers/hub/peer_process.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int ecc_error = 214;  // value of cudaError_t
const DeviceRule any_device{.use = DeviceRule::Use::automatic};

// A service with a slow driver.
struct SlowHubService : HubService {
  SlowHubService() : HubService(long_timeouts, 1h, any_device) { simulated_cuda::hold_starts(); }
  ~SlowHubService() {
    if (releases) simulated_cuda::release_starts();
  }

  bool releases = true;  // the destructor releases the driver
};

struct StartFixture {
  StartFixture() { simulated_cuda::reset(); }
};

// The driver has been called for a device.
bool is_starting() { return simulated_cuda::calls("cudaSetDevice") > 0; }

const Hello on_device{.name = "w", .device = "cuda:0"};

}  // namespace

TEST_CASE_METHOD(
    StartFixture,
    "while a driver makes a device ready for its first worker, others get their rows") {
  SlowHubService service;
  RawWorker first(service);
  first.send(on_device);
  service.run_until(is_starting);
  RawWorker other(service);
  other.attach();
  service.open(1);
  service.row(1);
  CHECK(rows_of(other.receive<HandedBatch>()) == "1.0");
  CHECK(service.stats.workers.value() == 1);
  simulated_cuda::release_starts();
  CHECK(first.receive<Welcome>().device);
}

TEST_CASE_METHOD(StartFixture, "a watcher does not wait for a device") {
  SlowHubService service;
  RawWorker watcher(service);
  watcher.send(Hello{.name = "watcher", .device = "cuda:0", .watch = true});
  (void)watcher.receive<Welcome>();
}

TEST_CASE_METHOD(StartFixture, "a device is ready once its first worker is welcomed") {
  HubService service(HubService::long_timeouts, 1h, any_device);
  CHECK_FALSE(service.devices.is_ready("cuda:1"));
  RawWorker(service).attach(2, "cuda:1");
  CHECK(service.devices.is_ready("cuda:1"));
  CHECK_FALSE(service.devices.is_ready("cuda:0"));
}

TEST_CASE_METHOD(StartFixture, "listed devices are ready from the start, as are those of workers") {
  Devices listed({.use = DeviceRule::Use::listed, .listed = {"cuda:1"}});
  CHECK(listed.is_ready("cuda:1"));
  CHECK(listed.is_ready("cuda:0"));
  CHECK(Devices().is_ready("cuda:0"));
}

TEST_CASE_METHOD(StartFixture, "a device that cannot be made ready is tried once for each worker") {
  HubService service(HubService::long_timeouts, 1h, any_device);
  constexpr int unavailable = 46;  // value of cudaError_t: another process uses it exclusively
  simulated_cuda::fail("cudaSetDevice", unavailable, 1);
  RawWorker copies(service);
  CHECK_FALSE(copies.send(on_device).receive<Welcome>().device);
  CHECK(service.logged("worker copies from host memory"));
  CHECK(simulated_cuda::calls("cudaSetDevice") == 1);
  RawWorker again(service);
  CHECK(again.send(on_device).receive<Welcome>().device);
}

TEST_CASE_METHOD(StartFixture, "a device that died before it was ready is not called again") {
  HubService service(HubService::long_timeouts, 1h, any_device);
  simulated_cuda::kill_device(ecc_error);
  for (int i = 0; i < 2; ++i) {
    RawWorker worker(service);
    CHECK(worker.send(on_device).receive<Refused>().code == "device");
  }
  CHECK(simulated_cuda::calls("cudaSetDevice") == 1);
  CHECK(service.lost_devices.at(0) == "0 ecc");
}

TEST_CASE_METHOD(StartFixture,
                 "no slabs are made for a worker that has not waited for its device") {
  SlowHubService service;
  {
    RawWorker worker(service);
    worker.send(on_device);
    service.run_until(is_starting);
  }
  service.run_until([&] { return service.logged("worker refused"); });
  simulated_cuda::release_starts();
  RawWorker one(service), another(service);
  CHECK(one.send(on_device).receive<Welcome>().device);
  const auto for_one = simulated_cuda::calls("cudaMalloc");
  CHECK(another.send(on_device).receive<Welcome>().device);
  CHECK(simulated_cuda::calls("cudaMalloc") == 2 * for_one);
}

TEST_CASE_METHOD(StartFixture,
                 "a worker that waits for a device is refused when the service stops") {
  SlowHubService service;
  RawWorker worker(service);
  worker.send(on_device);
  service.run_until(is_starting);
  service.hub.stop();
  simulated_cuda::release_starts();
  CHECK(worker.receive<Refused>().code == "stopping");
}

TEST_CASE_METHOD(StartFixture,
                 "the destructor waits for a driver, and ends connections that wait for a device") {
  auto service = std::make_unique<SlowHubService>();
  RawWorker first(*service), second(*service);
  first.send(on_device);
  second.send(on_device);
  service->run_until(is_starting);
  service->run();
  const std::string path = service->path();
  // After the listener was destroyed, the destructor waits for the driver.
  const std::jthread driver([&path] {
    while (std::filesystem::exists(path)) std::this_thread::yield();
    simulated_cuda::release_starts();
  });
  service->releases = false;
  service.reset();
  CHECK_FALSE(is_connected(first.handle()));
  CHECK_FALSE(is_connected(second.handle()));
}
