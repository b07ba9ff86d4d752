// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tests/gpu/simulated/stage.h"

using namespace millrace::test;

namespace {

// A stream that captures a graph.
class Capturing : public SimulatedStage {
 public:
  void begin(cudaStreamCaptureMode mode) {
    REQUIRE(cudaStreamBeginCapture(capturing, mode) == cudaSuccess);
  }
  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(capturing, &graph);
    CHECK((graph != nullptr) == (error == cudaSuccess));
    return error;
  }
  // Queries an event in this thread, or in another one that has this mode.
  cudaError_t query() const { return cudaEventQuery(done); }
  cudaError_t query_beside(cudaStreamCaptureMode mode) const {
    cudaError_t error = cudaSuccess;
    std::jthread([&, mode]() mutable {
      CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
      CHECK(mode == cudaStreamCaptureModeGlobal);
      error = query();
    });
    return error;
  }

  const cudaStream_t capturing = stream();
  const cudaEvent_t done = event();
};

}  // namespace

TEST_CASE_METHOD(Capturing, "work on a stream that captures a graph is not executed") {
  std::byte* const device = memory(1);
  begin(cudaStreamCaptureModeGlobal);
  CHECK(cudaMemsetAsync(device, 'a', 1, capturing) == cudaSuccess);
  CHECK(end() == cudaSuccess);
  CHECK(text(device, 1) == "\xCD");
}

TEST_CASE_METHOD(Capturing,
                 "an unsafe call fails beside a capture that prohibits it, and breaks it") {
  struct Case {
    cudaStreamCaptureMode capture;
    bool refused;
    cudaStreamCaptureMode caller = cudaStreamCaptureModeGlobal;
    bool same_thread = false;
  };
  for (const Case& one : {
           Case{cudaStreamCaptureModeGlobal, true},
           Case{cudaStreamCaptureModeGlobal, false, cudaStreamCaptureModeThreadLocal},
           Case{cudaStreamCaptureModeGlobal, false, cudaStreamCaptureModeRelaxed},
           Case{cudaStreamCaptureModeThreadLocal, false},
           Case{cudaStreamCaptureModeThreadLocal, true, cudaStreamCaptureModeGlobal, true},
           Case{cudaStreamCaptureModeRelaxed, false, cudaStreamCaptureModeGlobal, true},
       }) {
    CAPTURE(one.capture, one.caller, one.same_thread);
    begin(one.capture);
    CHECK((one.same_thread ? query() : query_beside(one.caller)) ==
          (one.refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess));
    CHECK(end() == (one.refused ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
  }
}

TEST_CASE_METHOD(Capturing,
                 "a capture must not wait for an event that was recorded outside of it") {
  REQUIRE(cudaEventRecord(done, stream()) == cudaSuccess);
  begin(cudaStreamCaptureModeRelaxed);
  CHECK(cudaStreamWaitEvent(capturing, done, 0) == cudaErrorStreamCaptureIsolation);
  CHECK(end() == cudaErrorStreamCaptureInvalidated);
  begin(cudaStreamCaptureModeRelaxed);
  REQUIRE(cudaEventRecord(done, capturing) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(capturing, done, 0) == cudaSuccess);
  CHECK(query() == cudaErrorCapturedEvent);
  CHECK(end() == cudaSuccess);
}
