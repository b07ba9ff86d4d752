// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "tests/support/simulated_cuda/operation.h"

namespace millrace::test::simulated_cuda {

// Where what a program points to lies.
struct Place {
  enum class Kind { pageable, pinned, device };

  cudaError_t error = cudaSuccess;  // not there
  Kind kind = Kind::pageable;
  std::byte* at = nullptr;  // for operations
  int device = -1;          // that has it
  std::size_t room = 0;     // from there to the end of the device's memory
  std::atomic<int>* uses = nullptr;
};

Place place_of(const void* pointer, std::size_t bytes);

// The same for what must lie on the stream's device, and says so where it does not.
Place place_on(int device, const void* pointer, std::size_t bytes);

}  // namespace millrace::test::simulated_cuda
