// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

// What is around every call of CUDA: it is counted, may be made to fail, is refused by a device
// that is dead, and leaves its error for cudaGetLastError.
namespace millrace::test::simulated_cuda {

enum class WhenDead {
  refuse,  // does nothing
  let_go,  // gives back what it is given, and returns the death all the same
  answer,  // asks no device
};

// Begins a call; unless cudaSuccess, it must not go on.
cudaError_t enter(const char* function, WhenDead when_dead);
// Ends it with its error.
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

// The one that this thread is in, or was in last.
const char* current_call();

// Of this thread.
int current_device();
void set_current_device(int device);
// Whether any call has made the device's context.
void mark_in_use(int device);
bool is_in_use(int device);

// Marks this thread as one in which CUDA must not be called.
void enter_host_function();
void leave_host_function();

// At exit, "function count" lines.
void write_calls_at_exit(std::string path);

void forget_calls();

}  // namespace millrace::test::simulated_cuda
