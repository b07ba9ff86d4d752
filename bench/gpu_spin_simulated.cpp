// SPDX-License-Identifier: Apache-2.0
// The simulated model on simulated devices; gpu_spin.cu has the one for real devices.
#include <memory>

#include "base/time.h"
#include "bench/gpu_spin.h"
#include "gpu/cuda/calls.h"
#include "tests/support/simulated_cuda/streams.h"

namespace millrace::bench {

using test::simulated_cuda::Operation;
using test::simulated_cuda::Stream;

void spin(std::chrono::microseconds time, DeviceStream stream) {
  const auto compute = [time](Stream&) {
    const Time end = Clock::now() + time;
    while (Clock::now() < end) {
    }
  };
  cuda::check(
      test::simulated_cuda::put(static_cast<cudaStream_t>(stream),
                                std::make_unique<Operation>(Operation::Kind::kernel, compute)),
      "computing");
}

}  // namespace millrace::bench
