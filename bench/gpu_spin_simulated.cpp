// SPDX-License-Identifier: Apache-2.0
// The simulated model on simulated devices; gpu_spin.cu has the one for real devices.
#include <memory>

#include "base/time.h"
#include "bench/gpu_spin.h"
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
  test::simulated_cuda::find_stream(static_cast<cudaStream_t>(stream))
      ->put(std::make_unique<Operation>(Operation::Kind::kernel, compute));
}

}  // namespace millrace::bench
