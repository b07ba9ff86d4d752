// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>

#include "gpu/cuda/calls.h"

namespace millrace::probe {

// While it lives, one thread of this process captures graphs in global mode, and another one loads
// modules, and allocates and frees memory of the current device. Thread-safe.
class Disturbance {
 public:
  using Pause = std::unique_lock<std::mutex>;

  // Returns when the first capture has begun.
  Disturbance();

  // While the result lives, nothing is loaded or freed: both may wait for kernels, with locks that
  // other threads need for a launch.
  Pause pause() { return Pause(turn_); }
  // Prints what the threads did.
  void print() const;

 private:
  void capture(const std::stop_token& stop);
  bool capture_graph();  // false if another thread broke the capture
  void load(const std::stop_token& stop);
  void load_and_free();

  int device_ = 0;
  const cuda::Memory memory_;
  const cuda::Stream stream_;
  std::mutex turn_;
  std::atomic<bool> begun_{false};
  std::atomic<std::uint64_t> captured_{0}, broken_{0}, loaded_{0}, allocated_{0};
  std::jthread capturing_, loading_;  // last members: they use the others
};

}  // namespace millrace::probe
