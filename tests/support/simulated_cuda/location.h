// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "tests/support/simulated_cuda/operation.h"

namespace millrace::test::simulated_cuda {

// The memory to which a pointer of the program points.
struct Location {
  enum class Kind { pageable, pinned, device };

  cudaError_t error = cudaSuccess;  // why the pointer is invalid
  Kind kind = Kind::pageable;
  std::byte* at = nullptr;     // the address for operations
  int device = -1;             // the device of the memory
  std::size_t bytes_left = 0;  // bytes from `at` to the end of the allocation
  std::atomic<int>* uses = nullptr;
};

Location location_of(const void* pointer, std::size_t bytes);

// The same for memory that must be on `device`; otherwise a breach.
Location location_on(int device, const void* pointer, std::size_t bytes);

}  // namespace millrace::test::simulated_cuda
