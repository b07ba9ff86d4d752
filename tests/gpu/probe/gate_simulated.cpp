// SPDX-License-Identifier: Apache-2.0
// The gate on simulated devices; gate.cu has the one for real devices.
#include <atomic>
#include <thread>

#include "gpu/cuda/calls.h"
#include "tests/gpu/probe/gate.h"
#include "tests/support/simulated_cuda/streams.h"

namespace millrace::probe {

namespace {

using test::simulated_cuda::Operation;
using test::simulated_cuda::Stream;

}  // namespace

struct Gate::Shared {
  std::atomic<std::uint32_t> opened{0};
};

Gate::Gate() : shared_(std::make_unique<Shared>()) {}

// Leaks the memory that the last kernels read, because they may still wait.
Gate::~Gate() { (void)shared_.release(); }

void Gate::hold(cudaStream_t stream, std::uint32_t number) {
  const auto wait = [number, &opened = shared_->opened](Stream&) {
    for (std::uint32_t now = opened; static_cast<std::int32_t>(now - number) < 0; now = opened)
      opened.wait(now);
  };
  cuda::check(
      test::simulated_cuda::put(stream, std::make_unique<Operation>(Operation::Kind::kernel, wait)),
      "holding a stream");
}

void Gate::open(std::uint32_t number) {
  shared_->opened = number;
  shared_->opened.notify_all();
}

struct Disturbance::Threads {
  std::atomic<bool> ends{false};
  std::jthread allocating;
};

Disturbance::Disturbance() : threads_(std::make_unique<Threads>()) {
  threads_->allocating = std::jthread([&ends = threads_->ends] {
    (void)cudaSetDevice(0);
    while (!ends) (void)cuda::allocate(1 << 20);
  });
}

Disturbance::~Disturbance() { threads_->ends = true; }

}  // namespace millrace::probe
