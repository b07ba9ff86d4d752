// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "gpu/cuda/cuda.h"
#include "tests/gpu/simulated/stage.h"

// The properties of CUDA that our code relies on, and that a device cannot show on demand.

using namespace millrace;
using namespace millrace::test;
namespace simulated = millrace::test::simulated_cuda;

using Stage = SimulatedStage;

TEST_CASE_METHOD(Stage, "a stream works in order and later, and an event passes after that work") {
  const cudaStream_t on = stream();
  const cudaEvent_t done = event();
  std::byte* const device = memory(3);
  CHECK(cudaEventQuery(done) == cudaSuccess);  // never recorded
  simulated::hold(on);
  REQUIRE(cudaMemsetAsync(device, 'a', 2, on) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(device + 1, 'b', 1, on) == cudaSuccess);
  REQUIRE(cudaEventRecord(done, on) == cudaSuccess);
  CHECK(cudaStreamQuery(on) == cudaErrorNotReady);
  CHECK(cudaEventQuery(done) == cudaErrorNotReady);
  simulated::release(on);
  REQUIRE(cudaEventSynchronize(done) == cudaSuccess);
  CHECK(cudaEventQuery(done) == cudaSuccess);
  CHECK(text(device, 3) == "ab\xCD");
}

TEST_CASE_METHOD(Stage, "a stream waits for the record before its wait, not for a later one") {
  const cudaStream_t first = stream(), second = stream(), waiter = stream();
  const cudaEvent_t done = event();
  simulated::hold(first);
  SECTION("a later one does not hold it up") {
    REQUIRE(cudaEventRecord(done, second) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(waiter, done, 0) == cudaSuccess);
    REQUIRE(cudaEventRecord(done, first) == cudaSuccess);
    CHECK(cudaStreamSynchronize(waiter) == cudaSuccess);
    CHECK(cudaEventQuery(done) == cudaErrorNotReady);
  }
  SECTION("a later one does not release it") {
    REQUIRE(cudaEventRecord(done, first) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(waiter, done, 0) == cudaSuccess);
    REQUIRE(cudaEventRecord(done, second) == cudaSuccess);
    REQUIRE(cudaEventSynchronize(done) == cudaSuccess);
    CHECK(cudaStreamQuery(waiter) == cudaErrorNotReady);
    simulated::release(first);
    CHECK(cudaStreamSynchronize(waiter) == cudaSuccess);
  }
}

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
  write(device, "live");
  simulated::hold(on);
  REQUIRE(cudaMemcpyAsync(device, "dead", 4, cudaMemcpyHostToDevice, on) == cudaSuccess);
  REQUIRE(cudaEventRecord(done, on) == cudaSuccess);
  CHECK(simulated::leaks() == "device memory of 4 bytes\n1 streams\n1 events\n");
  simulated::kill_device(cudaErrorIllegalAddress);
  CHECK(cudaStreamSynchronize(on) == cudaErrorIllegalAddress);
  CHECK(cudaEventSynchronize(done) == cudaErrorIllegalAddress);
  CHECK(cudaEventQuery(done) == cudaErrorIllegalAddress);
  CHECK(cudaMemcpyAsync(device, "dead", 4, cudaMemcpyHostToDevice, on) == cudaErrorIllegalAddress);
  CHECK(std::string(reinterpret_cast<char*>(simulated::host_view(device)), 4) == "live");
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);  // is not cleared
  CHECK(cudaFree(device) == cudaErrorIllegalAddress);
  CHECK(simulated::leaks().empty());
}

TEST_CASE_METHOD(Stage, "an unsafe call fails beside a capture that prohibits it, and breaks it") {
  struct Case {
    cudaStreamCaptureMode capture;
    bool refused;
    cudaStreamCaptureMode caller = cudaStreamCaptureModeGlobal;
    bool same_thread = false;
  };
  const cudaStream_t capturing = stream();
  const cudaEvent_t done = event();
  for (const Case& one : {
           Case{cudaStreamCaptureModeGlobal, true},
           Case{cudaStreamCaptureModeGlobal, false, cudaStreamCaptureModeThreadLocal},
           Case{cudaStreamCaptureModeGlobal, false, cudaStreamCaptureModeRelaxed},
           Case{cudaStreamCaptureModeThreadLocal, false},
           Case{cudaStreamCaptureModeThreadLocal, true, cudaStreamCaptureModeGlobal, true},
           Case{cudaStreamCaptureModeRelaxed, false, cudaStreamCaptureModeGlobal, true},
       }) {
    CAPTURE(one.capture, one.caller, one.same_thread);
    REQUIRE(cudaStreamBeginCapture(capturing, one.capture) == cudaSuccess);
    cudaError_t error = cudaSuccess;
    const auto query = [&] {
      cudaStreamCaptureMode mode = one.caller;
      (void)cudaThreadExchangeStreamCaptureMode(&mode);
      error = cudaEventQuery(done);
    };
    if (one.same_thread)
      query();
    else
      std::jthread{query};
    CHECK(error == (one.refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess));
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(capturing, &graph) ==
          (one.refused ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
  }
}
