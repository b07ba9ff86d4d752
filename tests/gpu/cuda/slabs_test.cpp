// SPDX-License-Identifier: Apache-2.0
// Errors of devices and their order of events, on simulated devices.
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <optional>
#include <variant>

#include "base/queue.h"
#include "gpu/cuda/devices.h"
#include "tests/gpu/cuda/capture_beside.h"
#include "tests/gpu/cuda/consumer.h"
#include "tests/gpu/host/batches.h"
#include "tests/support/patience.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr RowFormat f32_rows{.dtype = Element::f32};
const RandomBatch batch(f32_rows, 4, 16, 1);

// Resets the simulation before and after a test.
class FreshSimulation {
 public:
  FreshSimulation() { simulated_cuda::reset(); }
  ~FreshSimulation() { simulated_cuda::reset(); }
};

// A ring of three slabs on cuda:0.
class RingUnderTest : FreshSimulation {
 public:
  explicit RingUnderTest(const DeviceRule& rule = {}) : devices(rule) {}

  void attach() {
    slabs = (*devices.open("cuda:0"))->attach(ring, [this](DeviceReport report) {
      (void)reports.try_push(std::move(report));
    });
  }
  Copying copy(std::uint32_t slab) {
    return slabs->copy(slab, batch.write(f32_rows.unexpanded(), ring.slab(slab)));
  }
  template <class Report>
  std::optional<Report> next() {
    auto report = reports.pop_until(Clock::now() + patience);
    if (!report || !std::holds_alternative<Report>(*report)) return std::nullopt;
    return std::get<Report>(*report);
  }
  bool silent() { return !reports.pop_until(Clock::now()); }

  Devices devices;
  Queue<DeviceReport> reports{100};
  SlabRing ring{3, 4096};
  std::unique_ptr<DeviceSlabs> slabs;
};

}  // namespace

TEST_CASE("if the pages of one slab cannot be locked, all copies use pageable memory") {
  RingUnderTest r;
  const auto all = r.ring.memory();
  REQUIRE(cudaHostRegister(&all.back(), 1, cudaHostRegisterDefault) == cudaSuccess);
  r.attach();
  CHECK_FALSE(r.slabs->pinned());
  CHECK(simulated_cuda::calls("cudaHostUnregister") == 2);  // the slabs before
  CHECK(r.copy(0) == Copying::under_way);
  CHECK(r.next<CopyEnded>());
  CHECK(cudaHostUnregister(&all.back()) == cudaSuccess);
}

TEST_CASE("slabs for which a device has no memory are a recoverable error") {
  RingUnderTest r;
  simulated_cuda::fail("cudaMalloc", cudaErrorMemoryAllocation, 1);
  try {
    r.attach();
    FAIL("there was memory");
  } catch (const DeviceFailure& error) {
    CHECK(error.fault() == DeviceFault::out_of_memory);
    CHECK(error.recoverable());
  }
  CHECK(simulated_cuda::leaks().empty());
  r.attach();
  CHECK(r.copy(0) == Copying::under_way);
}

TEST_CASE("if the device still answers, an error while slabs are made affects only these") {
  RingUnderTest r;
  for (const char* call : {"cudaMalloc", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags"}) {
    simulated_cuda::fail(call, cudaErrorUnknown, 1);
    try {
      r.attach();
      FAIL("there was no error");
    } catch (const DeviceFailure& error) {
      CHECK(error.fault() == DeviceFault::lost);
      CHECK(error.recoverable());
    }
    CHECK(simulated_cuda::leaks().empty());
  }
  r.attach();
  CHECK(r.copy(0) == Copying::under_way);
}

TEST_CASE("if the device does not answer, an error while slabs are made is not recoverable") {
  RingUnderTest r;
  r.devices.make_ready("cuda:0");
  const auto device = std::move(*r.devices.open("cuda:0"));
  simulated_cuda::kill_device(cudaErrorUnknown);
  try {
    r.slabs = device->attach(r.ring, nullptr);
    FAIL("there was no error");
  } catch (const DeviceFailure& error) {
    CHECK_FALSE(error.recoverable());
  }
}

TEST_CASE("slabs use at most [gpu] slab_bytes of a device's memory, and free it") {
  RingUnderTest r({.slab_bytes = std::uint64_t{2} << 20});
  r.attach();
  SlabRing another(3, 4096);
  CHECK_THROWS_WITH((*r.devices.open("cuda:0"))->attach(another, nullptr),
                    Catch::Contains("[gpu] slab_bytes of cuda:0"));
  r.slabs.reset();
  CHECK_NOTHROW((*r.devices.open("cuda:0"))->attach(another, nullptr));
}

TEST_CASE("there are handles of the memory, and of two events for each slab") {
  RingUnderTest r;
  r.attach();
  REQUIRE(r.slabs->handles());
  CHECK(r.slabs->handles()->copied.size() == 3);
  CHECK(r.slabs->handles()->finished.size() == 3);
}

TEST_CASE("if the device still works, a failed copy ends only its slabs") {
  RingUnderTest r;
  r.attach();
  simulated_cuda::fail("cudaMemcpyAsync", cudaErrorMemoryAllocation, 1);
  CHECK(r.copy(0) == Copying::failed);
  const auto lost = r.next<DeviceLost>();
  REQUIRE(lost);
  CHECK(lost->device_works);
  CHECK(lost->fault == DeviceFault::out_of_memory);
  (void)r.slabs->reader(f32_rows);
  r.slabs.reset();
  CHECK(simulated_cuda::leaks().empty());
  r.attach();
  CHECK(r.copy(0) == Copying::under_way);
}

TEST_CASE("if memory or events cannot be shared between processes, there are no handles") {
  RingUnderTest r;
  simulated_cuda::fail(
      GENERATE("cudaIpcGetMemHandle", "cudaIpcGetEventHandle", "cuMemGetAddressRange"),
      cudaErrorNotSupported, 1);
  r.attach();
  CHECK(r.slabs->handles() == nullptr);
  CHECK(r.copy(0) == Copying::under_way);
  CHECK(r.next<CopyEnded>());
}

TEST_CASE("the failure of a device is reported once, and nothing more is copied") {
  RingUnderTest r;
  r.attach();
  CHECK(r.copy(0) == Copying::under_way);
  CHECK(r.next<CopyEnded>());
  simulated_cuda::kill_device(cudaErrorECCUncorrectable);
  const auto calls = simulated_cuda::calls("cudaMemcpyAsync");
  CHECK(r.copy(1) == Copying::failed);
  const auto lost = r.next<DeviceLost>();
  REQUIRE(lost);
  CHECK(lost->fault == DeviceFault::ecc);
  CHECK_FALSE(lost->device_works);
  CHECK(r.copy(2) == Copying::failed);
  CHECK_FALSE(r.slabs->give_back(0));
  CHECK(r.silent());
  CHECK(simulated_cuda::calls("cudaMemcpyAsync") <= calls + 1);
}

TEST_CASE("a failure of a device during a copy is reported, and the device is not called again") {
  RingUnderTest r;
  r.attach();
  simulated_cuda::hold_copies();
  CHECK(r.copy(0) == Copying::under_way);
  simulated_cuda::kill_device(cudaErrorIllegalAddress);
  const auto lost = r.next<DeviceLost>();
  REQUIRE(lost);
  CHECK(lost->fault == DeviceFault::illegal_access);
  const auto frees = simulated_cuda::calls("cudaFree");
  r.slabs.reset();
  CHECK(simulated_cuda::calls("cudaFree") == frees);
}

TEST_CASE("after a failure that other slabs detected, the device is not called again") {
  RingUnderTest r;
  r.attach();
  SlabRing ring(3, 4096);
  std::optional<DeviceFault> reported;
  auto others = (*r.devices.open("cuda:0"))->attach(ring, [&reported](DeviceReport report) {
    reported = std::get<DeviceLost>(report).fault;
  });
  simulated_cuda::kill_device(cudaErrorECCUncorrectable);
  CHECK(r.copy(0) == Copying::failed);
  CHECK_FALSE(r.devices.open("cuda:0").has_value());
  const auto copies = simulated_cuda::calls("cudaMemcpyAsync"),
             queries = simulated_cuda::calls("cudaEventQuery");
  CHECK(others->copy(0, batch.write(f32_rows.unexpanded(), ring.slab(0))) == Copying::failed);
  CHECK_FALSE(others->give_back(0));
  others.reset();
  r.slabs.reset();
  CHECK(reported.has_value());
  CHECK(simulated_cuda::calls("cudaMemcpyAsync") == copies);
  CHECK(simulated_cuda::calls("cudaEventQuery") == queries);
  CHECK(simulated_cuda::calls("cudaFree") == 0);
  CHECK(simulated_cuda::calls("cudaHostUnregister") == 0);
}

TEST_CASE("a device that was marked as lost is not opened again") {
  RingUnderTest r;
  r.devices.mark_lost(0);
  const auto device = r.devices.open("cuda:0");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().message == "device cuda:0 has failed");
  CHECK((*r.devices.open("cuda:1"))->device_index() == 1u);
}

TEST_CASE("a device is opened by its UUID, which is the same in every process") {
  RingUnderTest r;
  const cuda::FoundDevice second = r.devices.usable().at(1);
  CHECK(second.uuid.size() == std::string_view("GPU-01234567-0123-0123-0123-0123456789ab").size());
  Devices listed({.use = DeviceRule::Use::listed, .listed = {second.uuid}});
  CHECK((*listed.open(second.uuid))->name() == "cuda:1");
  CHECK(listed.find("MIG-" + second.uuid.substr(4)) == 0u);  // its name as an instance
  CHECK((*listed.open("cuda:1"))->device_index() == 0u);
  CHECK_FALSE(listed.open("cuda:0").has_value());
}

TEST_CASE("a slow copy delays no call, and its slab is not free before it ends") {
  RingUnderTest r;
  r.attach();
  simulated_cuda::hold_copies();
  const auto waiting = simulated_cuda::waiting_calls();
  CHECK(r.copy(0) == Copying::under_way);
  CHECK(r.copy(1) == Copying::under_way);
  CHECK(r.silent());
  const Time released = Clock::now();
  simulated_cuda::release_copies();
  for (const std::uint32_t slab : {0u, 1u}) {
    const CopyEnded ended = r.next<CopyEnded>().value();
    CHECK(ended.slab == slab);
    CHECK(ended.at >= released);
  }
  CHECK(simulated_cuda::waiting_calls() - waiting <=
        2);  // calls of the device's thread, one per copy
}

TEST_CASE("a slab that the model still reads is reported free when the model has finished") {
  RingUnderTest r;
  r.attach();
  const auto reader = r.slabs->reader(f32_rows);
  const auto model = consumer_on("cuda:0");
  const SlabShape shape = batch.write(f32_rows.unexpanded(), r.ring.slab(0));
  REQUIRE(r.slabs->copy(0, shape) == Copying::under_way);
  (void)reader->take(0, shape, r.ring.slab(0));
  CHECK(r.next<CopyEnded>());
  simulated_cuda::hold(model->stream());
  const auto waits = simulated_cuda::calls("cudaStreamWaitEvent");
  for (int i = 0; i < 3; ++i) reader->use_on(0, model->stream());
  CHECK(simulated_cuda::calls("cudaStreamWaitEvent") == waits + 1);
  reader->give_back(0);
  CHECK_FALSE(r.slabs->give_back(0));
  CHECK(r.copy(1) == Copying::under_way);
  CHECK(r.next<CopyEnded>());  // slab 0 is not reported, though it was given back before
  simulated_cuda::release(model->stream());
  CHECK(r.next<SlabFreed>().value().slab == 0);
}

TEST_CASE("slabs can be destroyed while the model never finishes with them") {
  RingUnderTest r;
  r.attach();
  const auto model = consumer_on("cuda:0");
  {
    const auto reader = r.slabs->reader(f32_rows);
    const SlabShape shape = batch.write(f32_rows.unexpanded(), r.ring.slab(0));
    REQUIRE(r.slabs->copy(0, shape) == Copying::under_way);
    const DeviceArrays arrays = reader->take(0, shape, r.ring.slab(0));
    CHECK(r.next<CopyEnded>());
    // No kernel of the reader may be under way on the slabs when they end.
    REQUIRE(cudaEventSynchronize(static_cast<cudaEvent_t>(arrays.ready)) == cudaSuccess);
    simulated_cuda::hold(model->stream());
    reader->use_on(0, model->stream());
    reader->give_back(0);
    CHECK_FALSE(r.slabs->give_back(0));
    r.slabs.reset();
    simulated_cuda::release(model->stream());
  }
}

TEST_CASE("the path to the device never waits for it, and never uses the default stream") {
  RingUnderTest r;
  r.attach();
  const auto reader = r.slabs->reader(f32_rows);
  const auto model = consumer_on("cuda:0");
  const auto waiting = simulated_cuda::waiting_calls();
  for (std::uint32_t round = 0; round < 30; ++round) {
    const std::uint32_t slab = round % 3;
    const SlabShape shape = batch.write(f32_rows.unexpanded(), r.ring.slab(slab));
    REQUIRE(r.slabs->copy(slab, shape) == Copying::under_way);
    (void)reader->take(slab, shape, r.ring.slab(slab));
    reader->use_on(slab, model->stream());
    reader->give_back(slab);
    REQUIRE(r.next<CopyEnded>());
    if (!r.slabs->give_back(slab)) REQUIRE(r.next<SlabFreed>());
  }
  CHECK(simulated_cuda::waiting_calls() - waiting ==
        30);  // calls of the device's thread, one per copy
  CHECK(simulated_cuda::pageable_copies() == 0);
  CHECK(simulated_cuda::count(simulated_cuda::Breach::default_stream) == 0);
}

TEST_CASE("slabs and their reader work while another thread captures a graph, and break nothing") {
  RingUnderTest r;
  CaptureBeside capture;
  simulated_cuda::fail("cudaEventCreateWithFlags", cudaErrorUnknown, 1);
  CHECK_THROWS_AS(r.attach(), DeviceFailure);
  r.attach();
  auto reader = r.slabs->reader(f32_rows);
  const auto model = consumer_on("cuda:0");
  simulated_cuda::hold(model->stream());
  const SlabShape shape = batch.write(f32_rows.unexpanded(), r.ring.slab(0));
  REQUIRE(r.slabs->copy(0, shape) == Copying::under_way);
  REQUIRE(r.next<CopyEnded>());
  CHECK(reader->has_arrived(0));
  (void)reader->take(0, shape, r.ring.slab(0));
  reader->use_on(0, model->stream());
  reader->give_back(0);
  CHECK_FALSE(r.slabs->give_back(0));
  simulated_cuda::release(model->stream());
  REQUIRE(r.next<SlabFreed>());
  simulated_cuda::fail("cudaMemcpyAsync", cudaErrorMemoryAllocation, 1);
  CHECK(r.copy(0) == Copying::failed);
  CHECK(r.next<DeviceLost>().value().device_works);
  reader.reset();
  r.slabs.reset();
  CHECK(capture.end());
}
