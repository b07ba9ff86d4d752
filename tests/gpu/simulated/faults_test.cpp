// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "gpu/cuda/cuda.h"
#include "gpu/cuda/kernels.h"
#include "gpu/host/device_fault.h"
#include "tests/gpu/simulated/stage.h"

using namespace millrace;
using namespace millrace::test;
namespace simulated = millrace::test::simulated_cuda;

using Stage = SimulatedStage;

TEST_CASE_METHOD(Stage, "find_devices() finds the simulated devices") {
  const cuda::Machine machine = cuda::find_devices();
  REQUIRE(machine.devices.size() == 2);
  std::set<std::string> uuids;
  for (const cuda::FoundDevice& device : machine.devices) {
    CHECK(device.uuid.starts_with("GPU-73696d75-"));
    CHECK(device.memory == std::uint64_t{1} << 30);
    uuids.insert(device.uuid);
  }
  CHECK(uuids.size() == 2);
  CHECK(machine.devices[1].name == "cuda:1");
}

TEST_CASE_METHOD(Stage, "a machine may have no device, or no driver") {
  std::string why = "no CUDA device: no CUDA-capable device is detected";
  SECTION("device") { simulated::set_devices(0); }
  SECTION("driver") {
    simulated::fail("cudaGetDeviceCount", cudaErrorInsufficientDriver);
    why = "no driver for CUDA " + std::string(cuda::version()) + " or newer";
  }
  const cuda::Machine machine = cuda::find_devices();
  CHECK(machine.devices.empty());
  CHECK(machine.why_none == why);
}

TEST_CASE_METHOD(Stage, "an allocation beyond a device's memory fails") {
  simulated::set_memory(10 * 4096);
  std::byte* const first = memory(6 * 4096);
  void* second = nullptr;
  CHECK(cudaMalloc(&second, 5 * 4096) == cudaErrorMemoryAllocation);
  std::size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(free == 4 * 4096);
  CHECK(total == 10 * 4096);
  REQUIRE(cudaFree(first) == cudaSuccess);
  CHECK(cudaMalloc(&second, 5 * 4096) == cudaSuccess);
}

TEST_CASE_METHOD(Stage, "a call fails as often as requested, and does nothing") {
  simulated::fail("cudaMalloc", cudaErrorMemoryAllocation, 2);
  void* device = nullptr;
  CHECK(cudaMalloc(&device, 100) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&device, 100) == cudaErrorMemoryAllocation);
  CHECK(simulated::leaks().empty());
  CHECK(cudaMalloc(&device, 100) == cudaSuccess);
  simulated::fail("cudaMalloc", cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&device, 100) == cudaErrorMemoryAllocation);
  simulated::fail("cudaMalloc", 0, 0);
  CHECK(cudaMalloc(&device, 100) == cudaSuccess);
  CHECK(simulated::calls("cudaMalloc") == 5);
}

TEST_CASE_METHOD(Stage, "kernels can fail like calls") {
  simulated::fail("reset_rows", cudaErrorLaunchOutOfResources);
  std::byte* const device = memory(64);
  const auto* slot = reinterpret_cast<std::int32_t*>(device);
  const auto* reset = reinterpret_cast<std::uint8_t*>(device);
  CHECK_THROWS_AS(cuda::reset_rows({device, 16}, slot, reset, 1, stream()), DeviceFailure);
}

TEST_CASE_METHOD(Stage, "a dead device does nothing and returns its error in every call") {
  const cudaStream_t on = stream();
  const cudaEvent_t done = event();
  std::byte* const device = memory(4);
  std::string host = "live";
  REQUIRE(cudaMemcpy(device, host.data(), 4, cudaMemcpyHostToDevice) == cudaSuccess);
  simulated::hold(on);
  REQUIRE(cudaMemcpyAsync(device, "dead", 4, cudaMemcpyHostToDevice, on) == cudaSuccess);
  REQUIRE(cudaEventRecord(done, on) == cudaSuccess);
  simulated::kill_device(cudaErrorIllegalAddress);
  CHECK(cudaStreamSynchronize(on) == cudaErrorIllegalAddress);
  CHECK(cudaEventSynchronize(done) == cudaErrorIllegalAddress);
  CHECK(cudaEventQuery(done) == cudaErrorIllegalAddress);
  CHECK(cudaMemcpyAsync(device, "dead", 4, cudaMemcpyHostToDevice, on) == cudaErrorIllegalAddress);
  CHECK(std::string(reinterpret_cast<char*>(simulated::host_view(device)), 4) == "live");
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);  // is not cleared
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
}

TEST_CASE_METHOD(Stage, "memory and streams of a dead device are no leaks, and may be freed") {
  const cudaStream_t on = stream();
  std::byte* const device = memory(4);
  CHECK(simulated::leaks() == "device memory of 4 bytes\n1 streams\n");
  simulated::kill_device(cudaErrorECCUncorrectable);
  CHECK(simulated::leaks().empty());
  CHECK(cudaFree(device) == cudaErrorECCUncorrectable);
  CHECK(cudaStreamDestroy(on) == cudaErrorECCUncorrectable);
}

TEST_CASE_METHOD(Stage, "when a device dies, another continues to work") {
  simulated::kill_device(cudaErrorIllegalAddress, 0);
  CHECK(cudaSetDevice(0) == cudaErrorIllegalAddress);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  std::byte* const device = memory(4);
  write(device, "live");
  CHECK(text(device, 4) == "live");
}

TEST_CASE_METHOD(Stage, "a device dies at a copy") {
  simulated::kill_device_after(2, cudaErrorECCUncorrectable);
  const cudaStream_t on = stream();
  std::byte* const device = memory(4);
  write(device, "once");
  write(device, "more");
  (void)cudaMemcpyAsync(device, "last", 4, cudaMemcpyHostToDevice, on);  // may fail already
  CHECK(cudaStreamSynchronize(on) == cudaErrorECCUncorrectable);
  CHECK(std::string(reinterpret_cast<char*>(simulated::host_view(device)), 4) == "more");
}

TEST_CASE_METHOD(Stage, "copies can be held while other work continues") {
  simulated::hold_copies();
  const cudaStream_t copies = stream(), others = stream();
  const cudaEvent_t copied = event();
  std::byte* const device = memory(8);
  REQUIRE(cudaMemcpyAsync(device, "slow", 4, cudaMemcpyHostToDevice, copies) == cudaSuccess);
  REQUIRE(cudaEventRecord(copied, copies) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(device + 4, 0, 4, others) == cudaSuccess);
  CHECK(cudaStreamSynchronize(others) == cudaSuccess);
  CHECK(cudaEventQuery(copied) == cudaErrorNotReady);
  simulated::release_copies();
  CHECK(cudaEventSynchronize(copied) == cudaSuccess);
  CHECK(text(device, 4) == "slow");
}

TEST_CASE_METHOD(Stage, "guarded memory can be accessed only by copies") {
  simulated::guard(true);
  std::byte* const device = memory(4);
  CHECK(simulated::host_view(device) != device);
  write(device, "here");
  CHECK(text(device, 4) == "here");
  CHECK(std::string(reinterpret_cast<char*>(simulated::host_view(device)), 4) == "here");
  CHECK(cudaFree(device) == cudaSuccess);
}

TEST_CASE_METHOD(Stage, "memory and events that are not freed are listed") {
  std::byte* const device = memory(100);
  const cudaEvent_t one = event();
  void* host = nullptr;
  REQUIRE(cudaMallocHost(&host, 50) == cudaSuccess);
  CHECK(simulated::leaks() ==
        "device memory of 100 bytes\nlocked host memory of 50 bytes\n1 events\n");
  CHECK(cudaFreeHost(host) == cudaSuccess);
  CHECK(cudaEventDestroy(one) == cudaSuccess);
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(simulated::leaks().empty());
}
