// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "tests/support/simulated_cuda/operation.h"
#include "tests/support/simulated_cuda/stream.h"

// The streams of the process. Thread-safe.
namespace millrace::test::simulated_cuda {

// The stream of a handle; null, with a breach, if there is no such stream (any more). The default
// streams are those of the current device.
Stream* find_stream(cudaStream_t handle);

void wake_streams();
// Waits until the streams of dead devices use no memory.
void settle_dead_streams();

std::size_t streams_left();
// Ends all streams. Requires: no operation waits for an event that will never pass.
void forget_streams();

}  // namespace millrace::test::simulated_cuda
