// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/simulated_cuda/simulated_cuda.h"

namespace millrace::test {

// Fresh simulated devices for a test, and short forms of CUDA's calls that must succeed.
class SimulatedStage {
 public:
  SimulatedStage() { simulated_cuda::reset(); }
  ~SimulatedStage() { simulated_cuda::reset(); }

  static cudaStream_t stream() {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    return stream;
  }
  static cudaEvent_t event(unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t event = nullptr;
    REQUIRE(cudaEventCreateWithFlags(&event, flags) == cudaSuccess);
    return event;
  }
  static std::byte* memory(std::size_t bytes) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, bytes) == cudaSuccess);
    return static_cast<std::byte*>(memory);
  }
  // The content of device memory.
  static std::string text(const std::byte* memory, std::size_t bytes) {
    std::string text(bytes, ' ');
    REQUIRE(cudaMemcpy(text.data(), memory, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
    return text;
  }
  static void write(std::byte* memory, const std::string& text) {
    REQUIRE(cudaMemcpy(memory, text.data(), text.size(), cudaMemcpyHostToDevice) == cudaSuccess);
  }
};

}  // namespace millrace::test
