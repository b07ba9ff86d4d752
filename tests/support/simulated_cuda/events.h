// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "tests/support/simulated_cuda/event.h"

// The events of the process. Thread-safe.
namespace millrace::test::simulated_cuda {

// Its handle.
cudaEvent_t add(std::unique_ptr<Event> event);
// What a program's handle means; null, and said, where there is no such event (any more).
Event* find_event(cudaEvent_t handle);

std::size_t events_left();
void forget_events();

}  // namespace millrace::test::simulated_cuda
