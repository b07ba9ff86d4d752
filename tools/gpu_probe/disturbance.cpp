// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_probe/disturbance.h"

#include "tools/gpu_probe/kernels.h"
#include "tools/gpu_probe/report.h"

namespace millrace::probe {

namespace {

constexpr std::size_t captured_bytes = 1 << 20;
constexpr std::size_t allocated_bytes = 8 << 20;

}  // namespace

Disturbance::Disturbance() : memory_(cuda::allocate(captured_bytes)), stream_(cuda::make_stream()) {
  cuda::check(cudaGetDevice(&device_), "querying the current device");
  capturing_ = std::jthread([this](const std::stop_token& stop) { capture(stop); });
  loading_ = std::jthread([this](const std::stop_token& stop) { load(stop); });
  begun_.wait(false);
}

bool Disturbance::capture_graph() {
  const cudaError_t error = cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeGlobal);
  begun_ = true;
  begun_.notify_one();
  if (error != cudaSuccess) return false;
  for (int i = 0; i < 100; ++i)
    (void)cudaMemsetAsync(memory_.get(), 0, captured_bytes, stream_.get());
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream_.get(), &graph) != cudaSuccess) return false;
  return cudaGraphDestroy(graph) == cudaSuccess;
}

void Disturbance::capture(const std::stop_token& stop) {
  cuda::ignore(cudaSetDevice(device_));
  while (!stop.stop_requested()) {
    ++(capture_graph() ? captured_ : broken_);
    (void)cudaGetLastError();
  }
}

void Disturbance::load(const std::stop_token& stop) {
  cuda::ignore(cudaSetDevice(device_));
  const cuda::Relaxed relaxed;
  while (!stop.stop_requested()) {
    load_and_free();
    (void)cudaGetLastError();
    std::this_thread::yield();  // to a thread that waits for its turn
  }
}

void Disturbance::load_and_free() {
  void* memory = nullptr;
  const bool allocated = cudaMalloc(&memory, allocated_bytes) == cudaSuccess;
  const Pause turn = pause();
  if (load_module()) ++loaded_;
  if (allocated && cudaFree(memory) == cudaSuccess) ++allocated_;
}

void Disturbance::print() const {
  say("meanwhile %llu graphs were captured and %llu broken, %llu modules loaded, %llu times memory",
      static_cast<unsigned long long>(captured_), static_cast<unsigned long long>(broken_),
      static_cast<unsigned long long>(loaded_), static_cast<unsigned long long>(allocated_));
  if (loaded_ == 0) say("NO module could be loaded: nothing is known about loading");
}

}  // namespace millrace::probe
