// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/time.h"
#include "tools/gpu_probe/kernels.h"

namespace millrace::probe {

// Holds streams of the current device with kernels that wait for the host, so that the work after
// them on the stream is certainly not done. Confined to one thread.
class Gate {
 public:
  // Allocates pages and loads the kernel: make it before anything captures graphs. A kernel waits
  // for up to `longest`.
  explicit Gate(Duration longest);

  // Puts a kernel on `stream` that ends when open() is called with `number` or more. Numbers begin
  // with 1.
  void hold(cudaStream_t stream, std::uint32_t number);
  void open(std::uint32_t number);
  // True if a kernel with `first` or a later number ended without open(). Requires: the kernels
  // have ended.
  bool has_timed_out(std::uint32_t first) const;

 private:
  Duration longest_;
  volatile GateWords* words_ = nullptr;  // never freed: the last kernels may still read them
};

}  // namespace millrace::probe
