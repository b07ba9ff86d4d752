// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/slab_threads.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <thread>

#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/workers/hub/door_fixture.h"
#include "workers/hub/peer_process.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int ecc = 214;  // of cudaError_t
const DeviceRule any_device{.use = DeviceRule::Use::automatic};

// A door of a machine whose driver takes its time.
struct SlowDoor : Door {
  SlowDoor() : Door(patient, 1h, any_device) { simulated_cuda::hold_starts(); }
  ~SlowDoor() {
    if (releases) simulated_cuda::release_starts();
  }

  bool releases = true;  // at its end, whatever happened in the test
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
  SlowDoor door;
  RawWorker first(door);
  first.send(on_device);
  door.run_until(is_starting);
  RawWorker other(door);
  other.attach();
  door.open(1);
  door.row(1);
  CHECK(rows_of(other.take<HandedBatch>()) == "1.0");
  CHECK(door.stats.workers.value() == 1);
  simulated_cuda::release_starts();
  CHECK(first.take<Welcome>().device);
}

TEST_CASE_METHOD(StartFixture, "who only watches does not wait for a device") {
  SlowDoor door;
  RawWorker watcher(door);
  watcher.send(Hello{.name = "watcher", .device = "cuda:0", .watch = true});
  (void)watcher.take<Welcome>();
}

TEST_CASE_METHOD(StartFixture, "a device is ready once its first worker is welcomed") {
  Door door(Door::patient, 1h, any_device);
  CHECK_FALSE(door.devices.is_ready("cuda:1"));
  RawWorker(door).attach(2, "cuda:1");
  CHECK(door.devices.is_ready("cuda:1"));
  CHECK_FALSE(door.devices.is_ready("cuda:0"));
}

TEST_CASE_METHOD(StartFixture, "listed devices are ready from the start, as are those of workers") {
  Devices listed({.use = DeviceRule::Use::listed, .listed = {"cuda:1"}});
  CHECK(listed.all_ready());
  CHECK(listed.is_ready("cuda:1"));
  CHECK(listed.is_ready("cuda:0"));
  CHECK(Devices().is_ready("cuda:0"));
}

TEST_CASE_METHOD(StartFixture, "a device that cannot be made ready is tried once for each worker") {
  Door door(Door::patient, 1h, any_device);
  constexpr int unavailable = 46;  // of cudaError_t: another process has it for itself
  simulated_cuda::fail("cudaSetDevice", unavailable, 1);
  RawWorker copies(door);
  CHECK_FALSE(copies.send(on_device).take<Welcome>().device);
  CHECK(door.logged("worker copies"));
  CHECK(simulated_cuda::calls("cudaSetDevice") == 1);
  RawWorker again(door);
  CHECK(again.send(on_device).take<Welcome>().device);
}

TEST_CASE_METHOD(StartFixture, "a device that died before it was ready is not called again") {
  Door door(Door::patient, 1h, any_device);
  simulated_cuda::kill_device(ecc);
  for (int i = 0; i < 2; ++i) {
    RawWorker worker(door);
    CHECK(worker.send(on_device).take<Refused>().code == "device");
  }
  CHECK(simulated_cuda::calls("cudaSetDevice") == 1);
  CHECK(door.lost_devices.at(0) == "0 ecc");
}

TEST_CASE_METHOD(StartFixture,
                 "no slabs are made for a worker that has not waited for its device") {
  SlowDoor door;
  {
    RawWorker worker(door);
    worker.send(on_device);
    door.run_until(is_starting);
  }
  door.run_until([&] { return door.logged("worker refused"); });
  simulated_cuda::release_starts();
  RawWorker one(door), another(door);
  CHECK(one.send(on_device).take<Welcome>().device);
  const auto for_one = simulated_cuda::calls("cudaMalloc");
  CHECK(another.send(on_device).take<Welcome>().device);
  CHECK(simulated_cuda::calls("cudaMalloc") == 2 * for_one);
}

TEST_CASE_METHOD(StartFixture, "a service that stops meanwhile says so to who waits for a device") {
  SlowDoor door;
  RawWorker worker(door);
  worker.send(on_device);
  door.run_until(is_starting);
  door.hub.dismiss();
  simulated_cuda::release_starts();
  CHECK(worker.take<Refused>().code == "stopping");
}

TEST_CASE_METHOD(StartFixture, "the end waits for a driver, and who waits for a device sees it") {
  auto door = std::make_unique<SlowDoor>();
  RawWorker first(*door), second(*door);
  first.send(on_device);
  second.send(on_device);
  door->run_until(is_starting);
  door->run();
  const std::string path = door->path();
  // Once there is no door any more the driver is waited for.
  const std::jthread driver([&path] {
    while (std::filesystem::exists(path)) std::this_thread::yield();
    simulated_cuda::release_starts();
  });
  door->releases = false;
  door.reset();
  CHECK_FALSE(is_connected(first.handle()));
  CHECK_FALSE(is_connected(second.handle()));
}
