// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"
#include "gpu/cuda/calls.h"
#include "tools/gpu_probe/report.h"

// The view of a process after another one that shared events and memory with it has ended.
namespace millrace::probe {

// Queries an event again and again, and prints the code whenever it changes. Returns the last one.
cudaError_t watch(const cuda::Event& event, Duration how_long);

// Prints the code and the time of a call.
template <class Call>
void timed(const char* name, const Call& call) {
  const Time begun = Clock::now();
  const cudaError_t code = call();
  say("%s: %s after %.1f ms", name, cudaGetErrorName(code), milliseconds(Clock::now() - begun));
  (void)cudaGetLastError();
}

// Prints whether this process can still use the device.
bool device_works();

[[noreturn]] void wait_to_be_killed();

}  // namespace millrace::probe
