// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "tests/support/simulated_cuda/simulated_cuda.h"

namespace millrace::test::simulated_cuda {

// Says on stderr what the program did wrong, and ends it; where that is tolerated, counts it and
// returns the code.
cudaError_t breach(Breach breach, const std::string& what, cudaError_t code);

void forget_breaches();

}  // namespace millrace::test::simulated_cuda
