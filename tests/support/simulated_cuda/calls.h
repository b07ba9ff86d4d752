// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

// The code around every call of CUDA: counts it, makes it fail if a test requests that, refuses it
// if the device is dead, and stores its error for cudaGetLastError.
namespace millrace::test::simulated_cuda {

enum class WhenDead {
  refuse,  // does nothing
  let_go,  // frees its argument, but returns the error of the dead device
  answer,  // does not use the device
};

// Begins a call. The call must not continue unless this returns cudaSuccess.
cudaError_t enter(const char* function, WhenDead when_dead);
// Ends a call with its error, and returns the error for the caller.
cudaError_t leave(cudaError_t error, WhenDead when_dead);

template <class Body>
cudaError_t call(const char* function, WhenDead when_dead, const Body& body) {
  cudaError_t error = enter(function, when_dead);
  if (error == cudaSuccess) error = body();
  return leave(error, when_dead);
}

template <class Body>
cudaError_t call(const char* function, const Body& body) {
  return call(function, WhenDead::refuse, body);
}

// The current or last call of this thread.
const char* current_call();

// The current device of this thread.
int current_device();
void set_current_device(int device);
// True if any call has created the device's context.
void mark_in_use(int device);
bool is_in_use(int device);

// Writes lines "function count" to this file at exit.
void write_calls_at_exit(std::string path);

void forget_calls();

}  // namespace millrace::test::simulated_cuda
