// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <string>

#include "gpu/cuda/cuda.h"
#include "tests/gpu/simulated/stage.h"

using namespace millrace;
using namespace millrace::test;
namespace simulated = millrace::test::simulated_cuda;

using Stage = SimulatedStage;

TEST_CASE_METHOD(Stage, "a machine may have no device, no driver, or an old one") {
  std::string why = "no CUDA device: no CUDA-capable device is detected";
  SECTION("device") { simulated::set_devices(0); }
  const std::string needed = "CUDA " + std::string(cuda::version()) + " or newer";
  SECTION("driver") {
    simulated::set_driver(0);
    why = "no driver for " + needed;
  }
  SECTION("driver for this CUDA") {
    simulated::set_driver(12020);
    why = "the driver is for CUDA 12.2; one for " + needed + " is needed";
  }
  const cuda::Machine machine = cuda::find_devices();
  CHECK(machine.devices.empty());
  CHECK(machine.why_none == why);
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
