// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <vector>

#include "gpu/cuda/kernels.h"
#include "gpu/host/device_fault.h"
#include "tests/gpu/simulated/stage.h"

using namespace millrace;
using namespace millrace::test;
namespace simulated = millrace::test::simulated_cuda;
using simulated::Breach;

namespace {

constexpr std::size_t page = 4096;

// Simulated devices on which breaches are only counted, and memory of all kinds.
class Breaking : public SimulatedStage {
 public:
  Breaking() {
    for (int i = 0; i < simulated::breaches_known; ++i) simulated::tolerate(static_cast<Breach>(i));
  }
  ~Breaking() { ::munmap(host, 2 * page); }

  static std::uint64_t breaches() {
    std::uint64_t all = 0;
    for (int i = 0; i < simulated::breaches_known; ++i)
      all += simulated::count(static_cast<Breach>(i));
    return all;
  }
  void lock_host() const {
    REQUIRE(cudaHostRegister(host, page, cudaHostRegisterDefault) == cudaSuccess);
  }
  cudaError_t copy(std::byte* to, std::size_t bytes) const {
    return cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, on);
  }

  std::byte* const host = static_cast<std::byte*>(
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::byte* const device = memory(100);
  const cudaStream_t on = stream();
};

}  // namespace

TEST_CASE_METHOD(Breaking, "a breach of a rule of CUDA is detected") {
  Breach breach = Breach::outside_allocation;
  SECTION("default stream") {
    breach = Breach::default_stream;
    CHECK(cudaMemsetAsync(device, 0, 4, nullptr) == cudaSuccess);
  }
  SECTION("a copy beyond the memory") { CHECK(copy(device + 50, 51) == cudaErrorInvalidValue); }
  SECTION("a copy to a device whose target is on the host") {
    CHECK(copy(host + page, 100) == cudaErrorInvalidValue);
  }
  SECTION("use of freed memory") {
    breach = Breach::use_after_free;
    REQUIRE(cudaFree(device) == cudaSuccess);
    CHECK(cudaMemsetAsync(device + 10, 0, 4, on) == cudaErrorInvalidValue);
  }
  SECTION("memory freed twice") {
    breach = Breach::use_after_free;
    REQUIRE(cudaFree(device) == cudaSuccess);
    CHECK(cudaFree(device) == cudaErrorInvalidValue);
  }
  SECTION("use of a destroyed stream") {
    breach = Breach::use_after_free;
    REQUIRE(cudaStreamDestroy(on) == cudaSuccess);
    CHECK(cudaStreamQuery(on) == cudaErrorInvalidResourceHandle);
  }
  SECTION("use of a destroyed event") {
    breach = Breach::use_after_free;
    const cudaEvent_t done = event();
    REQUIRE(cudaEventDestroy(done) == cudaSuccess);
    CHECK(cudaEventQuery(done) == cudaErrorInvalidResourceHandle);
  }
  SECTION("memory freed while a stream has work for it") {
    breach = Breach::freed_in_use;
    simulated::hold(on);
    REQUIRE(cudaMemsetAsync(device, 0, 100, on) == cudaSuccess);
    CHECK(cudaFree(device) == cudaSuccess);
    simulated::kill_device(cudaErrorUnknown);  // drops the work
  }
  SECTION("pages unlocked while a stream has work for them") {
    breach = Breach::unregistered_in_use;
    lock_host();
    simulated::hold(on);
    REQUIRE(copy(device, 100) == cudaSuccess);
    CHECK(cudaHostUnregister(host) == cudaSuccess);
    simulated::release(on);
    REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  }
  SECTION("pages unmapped before they are unlocked") {
    breach = Breach::unmapped_registered;
    lock_host();
    ::munmap(host, page);
    CHECK(cudaHostUnregister(host) == cudaSuccess);
  }
  SECTION("a write after the end of memory") {
    breach = Breach::overrun;
    *(simulated::host_view(device + 99) + 1) = std::byte{1};
    CHECK(cudaFree(device) == cudaSuccess);
  }
  SECTION("an event on a stream of another device") {
    breach = Breach::wrong_device;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    CHECK(cudaEventRecord(event(), on) == cudaErrorInvalidResourceHandle);
  }
  SECTION("a kernel on a stream of another device") {
    breach = Breach::wrong_device;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    const auto* slots = reinterpret_cast<std::int32_t*>(memory(4));
    CHECK_THROWS_AS(cuda::gather_rows({memory(8), 4}, slots, 1, memory(4), on), DeviceFailure);
  }
  SECTION("a kernel that accesses a slot outside the state, or an array beyond its end") {
    auto* const slots = reinterpret_cast<std::int32_t*>(memory(8));
    write(reinterpret_cast<std::byte*>(slots), std::string("\0\0\0\0\6\0\0\0", 8));
    const std::uint32_t rows = GENERATE(2u, 3u);
    const auto gather = [&] { cuda::gather_rows({device, 16}, slots, rows, memory(48), on); };
    if (rows == 2)
      gather();
    else
      CHECK_THROWS_AS(gather(), DeviceFailure);
    REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  }
  CHECK(simulated::count(breach) == 1);
  CHECK(breaches() == 1);
}

TEST_CASE_METHOD(Breaking, "a call that CUDA refuses with an error code is no breach") {
  cudaEvent_t none = nullptr;
  CHECK(cudaEventCreateWithFlags(&none, cudaEventInterprocess) == cudaErrorInvalidValue);
  lock_host();
  CHECK(cudaHostRegister(host, 2 * page, cudaHostRegisterDefault) ==
        cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaHostUnregister(host + 1) == cudaErrorHostMemoryNotRegistered);
  CHECK(copy(memory(2 * page), 2 * page) == cudaErrorInvalidValue);  // partly locked pages
  CHECK(cudaHostUnregister(host) == cudaSuccess);
  void* much = nullptr;
  CHECK(cudaMalloc(&much, std::size_t{1} << 31) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(breaches() == 0);
}
