// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "tests/support/simulated_cuda/event.h"

// The events of the process. Thread-safe.
namespace millrace::test::simulated_cuda {

// Adds an event and returns its handle.
cudaEvent_t add(std::unique_ptr<Event> event);
// The event of a handle; null, with a breach, if there is no such event (any more).
Event* find_event(cudaEvent_t handle);

std::size_t events_left();
void forget_events();

}  // namespace millrace::test::simulated_cuda
