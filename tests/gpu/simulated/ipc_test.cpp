// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <span>
#include <string>

#include "tests/gpu/host/hex.h"
#include "tests/gpu/simulated/program.h"
#include "tests/gpu/simulated/stage.h"

using namespace millrace::test;
namespace simulated = millrace::test::simulated_cuda;
using simulated::Breach;

namespace {

std::string code(cudaError_t error) { return std::to_string(error); }

template <class Handle>
std::string hex(const Handle& handle) {
  return hex_of(std::as_bytes(std::span(handle.reserved)));
}

class Sharing : public SimulatedStage {
 public:
  static std::string share(std::byte* memory) {
    cudaIpcMemHandle_t handle;
    REQUIRE(cudaIpcGetMemHandle(&handle, memory) == cudaSuccess);
    return "memory " + hex(handle);
  }
  static std::string share(cudaEvent_t event) {
    cudaIpcEventHandle_t handle;
    REQUIRE(cudaIpcGetEventHandle(&handle, event) == cudaSuccess);
    return "event " + hex(handle);
  }
  static cudaEvent_t shared_event() {
    return event(cudaEventDisableTiming | cudaEventInterprocess);
  }
};

const std::string good = "0";

}  // namespace

TEST_CASE_METHOD(Sharing,
                 "an event never passes if the process that recorded it was killed before that") {
  const cudaEvent_t finished = shared_event(), gate = shared_event();
  const cudaStream_t on = stream();
  {
    Program peer("simulated_peer");
    REQUIRE(peer.ask(share(finished)) == good);
    REQUIRE(peer.ask(share(gate)) == good);
    simulated::hold(on);
    REQUIRE(cudaEventRecord(gate, on) == cudaSuccess);
    REQUIRE(peer.ask("wait 1") == good);
    REQUIRE(peer.ask("record 0") == good);
    peer.kill();
  }
  simulated::release(on);
  REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  CHECK(cudaEventQuery(finished) == cudaErrorNotReady);
}

TEST_CASE_METHOD(Sharing, "a process cannot open its own handles") {
  std::byte* const device = memory(100);
  const cudaEvent_t event = shared_event();
  cudaIpcMemHandle_t of_memory;
  cudaIpcEventHandle_t of_event;
  REQUIRE(cudaIpcGetMemHandle(&of_memory, device) == cudaSuccess);
  REQUIRE(cudaIpcGetEventHandle(&of_event, event) == cudaSuccess);
  void* opened = nullptr;
  cudaEvent_t other = nullptr;
  CHECK(cudaIpcOpenMemHandle(&opened, of_memory, cudaIpcMemLazyEnablePeerAccess) ==
        cudaErrorDeviceUninitialized);
  CHECK(cudaIpcOpenEventHandle(&other, of_event) == cudaErrorDeviceUninitialized);
  cudaIpcMemHandle_t handle;
  CHECK(cudaIpcGetMemHandle(&handle, device + 10) == cudaErrorInvalidValue);
}

TEST_CASE_METHOD(Sharing, "only events with the interprocess flag can be shared") {
  cudaIpcEventHandle_t handle;
  CHECK(cudaIpcGetEventHandle(&handle, event()) == cudaErrorInvalidValue);
}

TEST_CASE_METHOD(Sharing, "a handle of freed memory cannot be opened") {
  std::byte* const device = memory(100);
  const std::string handle = share(device);
  REQUIRE(cudaFree(device) == cudaSuccess);
  (void)memory(100);  // may get the same descriptor
  Program peer("simulated_peer");
  CHECK(peer.ask(handle) == code(cudaErrorMapBufferObjectFailed));
}

TEST_CASE_METHOD(Sharing, "memory must not be freed while a living process has it open") {
  simulated::tolerate(Breach::freed_while_open);
  std::byte* const device = memory(100);
  Program peer("simulated_peer");
  REQUIRE(peer.ask(share(device)) == good);
  SECTION("lives") {
    CHECK(cudaFree(device) == cudaSuccess);
    CHECK(simulated::count(Breach::freed_while_open) == 1);
  }
  SECTION("closed it") {
    REQUIRE(peer.ask("close") == good);
    CHECK(cudaFree(device) == cudaSuccess);
    CHECK(simulated::count(Breach::freed_while_open) == 0);
  }
  SECTION("was killed") {
    peer.kill();
    CHECK(cudaFree(device) == cudaSuccess);
    CHECK(simulated::count(Breach::freed_while_open) == 0);
  }
}

TEST_CASE_METHOD(Sharing, "a process must not use an event that its creator has destroyed") {
  const cudaEvent_t copied = shared_event();
  Program peer("simulated_peer");
  REQUIRE(peer.ask(share(copied)) == good);
  REQUIRE(cudaEventDestroy(copied) == cudaSuccess);
  SECTION("but may destroy its own") { CHECK(peer.ask("destroy 0") == good); }
  SECTION("or ends") {
    CHECK(peer.ask("query 0").empty());
    CHECK(peer.errors().find("destroyed_elsewhere") != std::string::npos);
  }
}
