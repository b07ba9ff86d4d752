// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace millrace::probe {

// Holds streams of the current device with kernels that wait for the host, so that the work after
// them on the stream is certainly not done. Confined to one thread.
class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Puts a kernel on `stream` that ends when open() is called with `number` or more, or after a
  // minute.
  void hold(cudaStream_t stream, std::uint32_t number);
  void open(std::uint32_t number);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// While it lives, other threads of this process capture graphs in global mode, load modules, and
// allocate and free memory of the current device.
class Disturbance {
 public:
  Disturbance();
  ~Disturbance();
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

}  // namespace millrace::probe
