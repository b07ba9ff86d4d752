// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "gpu/cuda/calls.h"
#include "tests/gpu/probe/gate.h"

namespace millrace::probe {

namespace {

constexpr std::uint64_t longest_wait_ns = 60'000'000'000;

// A module that the driver has to compile.
constexpr char module_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";

__global__ void wait_for(const volatile std::uint32_t* opened, std::uint32_t number) {
  std::uint64_t begun = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (static_cast<std::int32_t>(*opened - number) < 0 && now - begun < longest_wait_ns);
}

void capture_graph(cudaStream_t stream, void* memory) {
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) != cudaSuccess) return;
  for (int i = 0; i < 100; ++i) (void)cudaMemsetAsync(memory, 0, 1 << 20, stream);
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) (void)cudaGraphDestroy(graph);
}

void capture_graphs(const std::atomic<bool>& ends, int device) {
  (void)cudaSetDevice(device);
  const cuda::Stream stream = cuda::make_stream();
  const cuda::Memory memory = cuda::allocate(1 << 20);
  while (!ends) {
    capture_graph(stream.get(), memory.get());
    (void)cudaGetLastError();
  }
}

void load_modules(const std::atomic<bool>& ends, int device) {
  (void)cudaSetDevice(device);
  while (!ends) {
    cudaLibrary_t library = nullptr;
    if (cudaLibraryLoadData(&library, module_text, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
        cudaSuccess)
      (void)cudaLibraryUnload(library);
    void* memory = nullptr;
    if (cudaMalloc(&memory, 64 << 20) == cudaSuccess) (void)cudaFree(memory);
    (void)cudaGetLastError();
  }
}

}  // namespace

struct Gate::Shared {
  volatile std::uint32_t* opened = nullptr;           // in mapped host pages
  const volatile std::uint32_t* of_device = nullptr;  // the same for the device
};

Gate::Gate() : shared_(std::make_unique<Shared>()) {
  void *host = nullptr, *device = nullptr;
  cuda::check(cudaHostAlloc(&host, sizeof(std::uint32_t), cudaHostAllocMapped), "locking pages");
  shared_->opened = static_cast<volatile std::uint32_t*>(host);
  *shared_->opened = 0;
  cuda::check(cudaHostGetDevicePointer(&device, host, 0), "mapping pages");
  shared_->of_device = static_cast<const volatile std::uint32_t*>(device);
}

// Does not free the pages: the last kernels may still read them.
Gate::~Gate() = default;

void Gate::hold(cudaStream_t stream, std::uint32_t number) {
  wait_for<<<1, 1, 0, stream>>>(shared_->of_device, number);
  cuda::check(cudaGetLastError(), "holding a stream");
}

void Gate::open(std::uint32_t number) { *shared_->opened = number; }

struct Disturbance::Threads {
  std::atomic<bool> ends{false};
  std::jthread capturing, loading;
};

Disturbance::Disturbance() : threads_(std::make_unique<Threads>()) {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "querying the current device");
  Threads& all = *threads_;
  all.capturing = std::jthread([&all, device] { capture_graphs(all.ends, device); });
  all.loading = std::jthread([&all, device] { load_modules(all.ends, device); });
}

Disturbance::~Disturbance() { threads_->ends = true; }

}  // namespace millrace::probe
