// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/cuda/calls.h"

namespace millrace::bench {

// How long work takes on a device, by the device's own clock. Confined to one thread, whose current
// device it is.
class Timing {
 public:
  // Each figure is the median of `samples`.
  explicit Timing(int samples);

  // Seconds of one `work`, which puts something on the stream that it is given; a sample is so many
  // of them in a row.
  double seconds(int in_a_row, const std::function<void(cudaStream_t)>& work) const;

 private:
  int samples_;
  cuda::Stream stream_;
  cuda::Event begun_, ended_;
};

// Memory of the current device that holds random bits: what is all the same may be faster to move.
cuda::Memory random_memory(std::size_t bytes);

template <class T>
cuda::Memory on_device(const std::vector<T>& values) {
  cuda::Memory memory = cuda::allocate(values.size() * sizeof(T));
  cuda::check(
      cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
      "writing memory of the device");
  return memory;
}

// Memory of the host with locked pages.
struct FreePinned {
  void operator()(std::byte* memory) const { (void)cudaFreeHost(memory); }
};
using Pinned = std::unique_ptr<std::byte, FreePinned>;
Pinned random_pinned(std::size_t bytes);

// More than fits into the second-level cache of the current device many times over.
std::size_t beyond_cache();

}  // namespace millrace::bench
