// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "gpu/cuda/calls.h"

namespace millrace::bench {

// Measures how long work takes on the current device, by the device's clock. Confined to one
// thread.
class Timing {
 public:
  // Each result is the median of `samples` samples.
  explicit Timing(int samples);

  // The seconds that one `work` takes. `work` puts its operations on the given stream. A sample is
  // `in_a_row` of them, one after the other.
  double seconds(int in_a_row, const std::function<void(cudaStream_t)>& work) const;

 private:
  int samples_;
  cuda::Stream stream_;
  cuda::Event begun_, ended_;
};

// Memory of the current device with random bits: uniform memory may be faster to move.
cuda::Memory random_memory(std::size_t bytes);

template <class T>
cuda::Memory on_device(const std::vector<T>& values) {
  cuda::Memory memory = cuda::allocate(values.size() * sizeof(T));
  cuda::check(
      cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
      "writing device memory");
  return memory;
}

// Writes random bits.
void fill_randomly(MutableBytes memory);

// The CPU time of this thread.
Duration cpu_time();
double microseconds(Duration time);

// A number of bytes: at least 512 MiB and eight times the second-level cache of the current device.
std::size_t beyond_cache();

}  // namespace millrace::bench
