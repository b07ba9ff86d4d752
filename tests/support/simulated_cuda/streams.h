// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "tests/support/simulated_cuda/operation.h"
#include "tests/support/simulated_cuda/stream.h"

// The streams of the process. Thread-safe.
namespace millrace::test::simulated_cuda {

// What a program's handle means; null, and said, where there is no such stream (any more). Those
// that every device has are the current device's.
Stream* find_stream(cudaStream_t handle);

// Puts it on a stream; the error that the call is to return.
cudaError_t put(cudaStream_t handle, std::unique_ptr<Operation> operation);

void wake_streams();
// Until those of dead devices touch no memory.
void settle_dead_streams();

std::size_t streams_left();
// Ends them all. Requires: nothing is on any that waits for what will not come.
void forget_streams();

}  // namespace millrace::test::simulated_cuda
