// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "tests/support/simulated_cuda/simulated_cuda.h"

namespace millrace::test::simulated_cuda {

// Counts a breach. Returns `code` if it is tolerated; otherwise prints `what` to stderr and aborts.
cudaError_t breach(Breach breach, const std::string& what, cudaError_t code);

void forget_breaches();

}  // namespace millrace::test::simulated_cuda
