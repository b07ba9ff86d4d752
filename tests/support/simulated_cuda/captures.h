// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "tests/support/simulated_cuda/stream.h"

// The captures of graphs that are under way. Thread-safe.
namespace millrace::test::simulated_cuda {

// For a call that is unsafe beside captures: breaks the captures that prohibit it to this thread,
// and returns its error. cudaSuccess if it is allowed.
cudaError_t refused_by_captures();

void forget_captures();

}  // namespace millrace::test::simulated_cuda
