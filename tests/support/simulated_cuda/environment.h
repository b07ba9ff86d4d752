// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::test::simulated_cuda {

// Applies MILLRACE_SIMULATED_CUDA (simulated_cuda.h) and CUDA_VISIBLE_DEVICES at the first call.
// Aborts if an entry is invalid.
void configure_once();

}  // namespace millrace::test::simulated_cuda
