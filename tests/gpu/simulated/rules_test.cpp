// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "gpu/cuda/kernels.h"
#include "gpu/host/device_fault.h"
#include "tests/gpu/simulated/stage.h"

using namespace millrace;
using namespace millrace::test;
namespace simulated = millrace::test::simulated_cuda;
using simulated::Breach;

namespace {

// Simulated devices on which broken rules are only counted.
class Breaking : public SimulatedStage {
 public:
  Breaking() {
    for (int i = 0; i < simulated::breaches_known; ++i) simulated::tolerate(static_cast<Breach>(i));
  }

  // True if this rule was broken once since the test began, and no other.
  static bool broke(Breach breach) {
    std::uint64_t all = 0;
    for (int i = 0; i < simulated::breaches_known; ++i)
      all += simulated::count(static_cast<Breach>(i));
    return all == 1 && simulated::count(breach) == 1;
  }
};

void call_cuda(void* error) { *static_cast<cudaError_t*>(error) = cudaStreamQuery(nullptr); }

std::byte* pages(std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  return static_cast<std::byte*>(at);
}

}  // namespace

TEST_CASE_METHOD(Breaking, "work on the default stream is a breach") {
  CHECK(cudaMemsetAsync(memory(4), 0, 4, nullptr) == cudaSuccess);
  CHECK(broke(Breach::default_stream));
}

TEST_CASE_METHOD(Breaking, "a copy beyond the allocated memory is a breach") {
  std::byte* const device = memory(100);
  const std::vector<char> host(200);
  CHECK(cudaMemcpyAsync(device + 50, host.data(), 51, cudaMemcpyHostToDevice, stream()) ==
        cudaErrorInvalidValue);
  CHECK(broke(Breach::outside_allocation));
}

TEST_CASE_METHOD(Breaking, "a copy to a device whose target is on the host is a breach") {
  std::vector<char> host(200);
  CHECK(cudaMemcpyAsync(host.data(), host.data() + 100, 100, cudaMemcpyHostToDevice, stream()) ==
        cudaErrorInvalidValue);
  CHECK(broke(Breach::outside_allocation));
}

TEST_CASE_METHOD(Breaking, "using or freeing freed memory is a breach") {
  std::byte* const device = memory(100);
  REQUIRE(cudaFree(device) == cudaSuccess);
  SECTION("used") { CHECK(cudaMemsetAsync(device + 10, 0, 4, stream()) == cudaErrorInvalidValue); }
  SECTION("freed") { CHECK(cudaFree(device) == cudaErrorInvalidValue); }
  CHECK(broke(Breach::use_after_free));
}

TEST_CASE_METHOD(Breaking, "using a destroyed stream or event is a breach") {
  SECTION("stream") {
    const cudaStream_t on = stream();
    REQUIRE(cudaStreamDestroy(on) == cudaSuccess);
    CHECK(cudaStreamQuery(on) == cudaErrorInvalidResourceHandle);
  }
  SECTION("event") {
    const cudaEvent_t done = event();
    REQUIRE(cudaEventDestroy(done) == cudaSuccess);
    CHECK(cudaEventQuery(done) == cudaErrorInvalidResourceHandle);
  }
  CHECK(broke(Breach::use_after_free));
}

TEST_CASE_METHOD(Breaking, "freeing memory while a stream has work for it is a breach") {
  const cudaStream_t on = stream();
  std::byte* const device = memory(100);
  simulated::hold(on);
  REQUIRE(cudaMemsetAsync(device, 0, 100, on) == cudaSuccess);
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(broke(Breach::freed_in_use));
  simulated::kill_device(cudaErrorUnknown);  // drops the work
}

TEST_CASE_METHOD(Breaking, "unlocking pages while a stream has work for them is a breach") {
  const cudaStream_t on = stream();
  std::byte* const device = memory(100);
  std::byte* const host = pages(4096);
  REQUIRE(cudaHostRegister(host, 4096, cudaHostRegisterDefault) == cudaSuccess);
  simulated::hold(on);
  REQUIRE(cudaMemcpyAsync(device, host, 100, cudaMemcpyHostToDevice, on) == cudaSuccess);
  CHECK(cudaHostUnregister(host) == cudaSuccess);
  CHECK(broke(Breach::unregistered_in_use));
  simulated::release(on);
  REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  ::munmap(host, 4096);
}

TEST_CASE_METHOD(Breaking, "unmapping pages before they are unlocked is a breach") {
  std::byte* const host = pages(4096);
  REQUIRE(cudaHostRegister(host, 4096, cudaHostRegisterDefault) == cudaSuccess);
  ::munmap(host, 4096);
  CHECK(cudaHostUnregister(host) == cudaSuccess);
  CHECK(broke(Breach::unmapped_registered));
}

TEST_CASE_METHOD(Breaking, "a write after the end of device memory is a breach") {
  std::byte* const device = memory(100);
  *simulated::host_view(device + 99) = std::byte{1};
  *(simulated::host_view(device + 99) + 1) = std::byte{1};
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(broke(Breach::overrun));
}

TEST_CASE_METHOD(Breaking, "using memory or an event on a stream of another device is a breach") {
  const cudaStream_t on = stream();
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  SECTION("memory") { CHECK(cudaMemsetAsync(memory(4), 0, 4, on) == cudaSuccess); }
  SECTION("event") { CHECK(cudaEventRecord(event(), on) == cudaErrorInvalidResourceHandle); }
  SECTION("kernel") {
    const std::int32_t* slots = reinterpret_cast<std::int32_t*>(memory(4));
    CHECK_THROWS_AS(cuda::gather_rows({memory(8), 4}, slots, 1, memory(4), on), DeviceFailure);
  }
  CHECK(broke(Breach::wrong_device));
}

TEST_CASE_METHOD(Breaking, "a CUDA call in a host function of a stream is a breach") {
  const cudaStream_t on = stream();
  cudaError_t error = cudaSuccess;
  REQUIRE(cudaLaunchHostFunc(on, call_cuda, &error) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  CHECK(error == cudaErrorNotPermitted);
  CHECK(broke(Breach::call_in_host_function));
}

TEST_CASE_METHOD(Breaking, "a kernel that accesses memory outside its arguments is a breach") {
  std::byte* const state = memory(3 * 16);
  auto* const slot = reinterpret_cast<std::int32_t*>(memory(8));
  const std::int32_t slots[] = {0, 3};
  REQUIRE(cudaMemcpy(slot, slots, sizeof slots, cudaMemcpyHostToDevice) == cudaSuccess);
  const cudaStream_t on = stream();
  SECTION("outside the state") { cuda::gather_rows({state, 16}, slot, 2, memory(32), on); }
  SECTION("outside an array") {
    CHECK_THROWS_AS(cuda::gather_rows({state, 16}, slot, 3, memory(48), on), DeviceFailure);
  }
  REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  CHECK(broke(Breach::outside_allocation));
}

TEST_CASE_METHOD(Breaking, "a call that CUDA refuses with an error code is no breach") {
  cudaEvent_t none = nullptr;
  CHECK(cudaEventCreateWithFlags(&none, cudaEventInterprocess) == cudaErrorInvalidValue);
  std::byte* const host = pages(8192);
  REQUIRE(cudaHostRegister(host, 4096, cudaHostRegisterDefault) == cudaSuccess);
  CHECK(cudaHostRegister(host, 8192, cudaHostRegisterDefault) ==
        cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaHostUnregister(host + 1) == cudaErrorHostMemoryNotRegistered);
  CHECK(cudaMemcpyAsync(memory(8192), host, 8192, cudaMemcpyHostToDevice, stream()) ==
        cudaErrorInvalidValue);  // partly locked pages
  CHECK(cudaHostUnregister(host) == cudaSuccess);
  void* much = nullptr;
  CHECK(cudaMalloc(&much, std::size_t{1} << 31) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  for (int i = 0; i < simulated::breaches_known; ++i)
    CHECK(simulated::count(static_cast<Breach>(i)) == 0);
  ::munmap(host, 8192);
}
