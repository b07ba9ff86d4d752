// SPDX-License-Identifier: Apache-2.0
// A worker with batches on a simulated device whose driver hangs or fails.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cuda/devices.h"
#include "tests/gpu/cuda/capture_beside.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/workers/library/child.h"
#include "tests/workers/library/fake_service.h"
#include "workers/library/warm_up.h"
#include "workers/library/worker.h"
#include "workers/plan/plan_text.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

// A process with three slabs of FakeService on a device, like the service.
class Exporter {
 public:
  DeviceHandles handles() const {
    std::array<DeviceHandle, 7> all;
    if (::read(ends_[0].get(), all.data(), sizeof all) != sizeof all)
      throw std::runtime_error("no handles");
    return {
        .memory = all[0], .copied = {all[1], all[2], all[3]}, .finished = {all[4], all[5], all[6]}};
  }
  void kill() { process_.kill(); }

 private:
  void make_slabs() const {
    Devices devices({.use = DeviceRule::Use::automatic});
    const auto device = std::move(*devices.open("cuda:0"));
    const SlabRing ring(3, 2048);
    const auto slabs = device->attach(ring, [](const DeviceReport&) {});
    const DeviceHandles made = *slabs->handles();
    std::vector<DeviceHandle> all{made.memory};
    for (const auto* events : {&made.copied, &made.finished})
      all.insert(all.end(), events->begin(), events->end());
    [[maybe_unused]] const auto written =
        ::write(ends_[1].get(), all.data(), all.size() * sizeof all[0]);
    for (;;) ::pause();
  }

  static std::array<FileDescriptor, 2> pipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  }

  const std::array<FileDescriptor, 2> ends_ = pipe();
  Child process_{[this] { make_slabs(); }};
};

struct FreshSimulation {
  FreshSimulation() { simulated_cuda::reset(); }
};

class OnDevice : FreshSimulation {
 protected:
  OnDevice() { service.welcome.device = exporter.handles(); }
  ~OnDevice() { simulated_cuda::release_queries(); }  // also if the test failed meanwhile

  // The worker waits for a batch in a call of the driver that does not return.
  void hold_worker() {
    simulated_cuda::hold_queries();
    waits = std::jthread([this] {
      try {
        taken = worker->next_until(Clock::now() + patience).has_value();
      } catch (const WorkerError& error) {
        reason = error.what();
        code = error.code();
      }
    });
    service.send(example_batch(1));
    while (simulated_cuda::calls("cudaEventQuery") == 0) std::this_thread::yield();
  }
  void release_worker() {
    simulated_cuda::release_queries();
    waits.join();
  }

  Exporter exporter;
  FakeService service;
  std::optional<Worker> worker;
  bool taken = false;
  std::string reason, code;
  std::jthread waits;
};

constexpr int unknown = 999;                                    // value of cudaError_t
const auto default_stream = reinterpret_cast<DeviceStream>(2);  // of the thread

}  // namespace

TEST_CASE_METHOD(OnDevice,
                 "while a call of the driver does not return, the worker sends heartbeats") {
  worker = service.attach({.device = "cuda:0", .heartbeats = {.interval = 20ms, .silence = 20s}});
  hold_worker();
  for (int i = 0; i < 20; ++i) CHECK_NOTHROW(service.receive<Heartbeat>());
  release_worker();
  CHECK(taken);
}

TEST_CASE_METHOD(OnDevice,
                 "an event that fails because the service was killed is the loss of the service") {
  worker = service.attach({.device = "cuda:0", .heartbeats = {.interval = 20s, .silence = 60s}});
  hold_worker();
  simulated_cuda::fail("cudaEventQuery", unknown);
  exporter.kill();
  const bool closed_later = GENERATE(false, true);
  if (!closed_later) service.hang_up();
  simulated_cuda::release_queries();
  if (closed_later) service.hang_up();
  release_worker();
  CHECK(reason == "the service closed the connection");
  CHECK(code.empty());
}

TEST_CASE_METHOD(OnDevice,
                 "an event that fails while the service lives is an error of the device") {
  worker = service.attach({.device = "cuda:0"});
  hold_worker();
  simulated_cuda::fail("cudaEventQuery", unknown);
  release_worker();
  CHECK(code == "device");
}

TEST_CASE_METHOD(OnDevice,
                 "a worker works while another thread captures a graph, and breaks nothing") {
  service.welcome.frames.element = Element::f32;
  service.welcome.slab_element = Element::s16;
  const bool opens_slabs = GENERATE(true, false);
  if (!opens_slabs) service.welcome.device.reset();
  CaptureBeside capture;
  worker = service.attach({.device = "cuda:0"});
  service.send(example_batch(1));
  auto batch = worker->next_until(Clock::now() + patience);
  REQUIRE(batch);
  worker->use_on(*batch, default_stream);
  worker->done(*batch);
  worker.reset();
  CHECK(capture.end());
}

TEST_CASE("a warm-up on a device has its tensors there, and beside a capture breaks nothing") {
  const FreshSimulation fresh;
  Welcome pipeline = FakeService().welcome;
  pipeline.frames.element = Element::f32;
  CaptureBeside capture;
  {
    WarmUp warm_up(pipeline, "cuda:0");
    CHECK(warm_up.ordinal() == 0);
    int batches = 0;
    for (; auto batch = warm_up.next(); ++batches) {
      REQUIRE(batch->device());
      CHECK(batch->data().empty());
      warm_up.use_on(*batch, default_stream);
      warm_up.done(*batch);
    }
    CHECK(batches == 2);
  }
  CHECK(capture.end());
}

TEST_CASE_METHOD(FreshSimulation,
                 "a trainer takes memory of its device, unless it asks for the plan only") {
  for (const bool plan_only : {true, false}) {
    FakeService service(FakeService::Over::tcp);
    service.welcome.plan =
        to_json(PlanText{.origin = R"({"digest":"7f","streams":9})", .slots = 8});
    const Worker trainer = service.attach(
        {.device = "cuda:0", .trainer = worker_protocol::TrainerHello{.plan_only = plan_only}});
    CHECK((simulated_cuda::calls("cudaMalloc") > 0) != plan_only);
  }
}
