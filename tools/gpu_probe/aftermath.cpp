// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_probe/aftermath.h"

#include <poll.h>
#include <unistd.h>

namespace millrace::probe {

cudaError_t watch(const cuda::Event& event, Duration how_long) {
  int last = -1;
  const Time begun = Clock::now();
  for (Time now = begun; now - begun < how_long; now = Clock::now()) {
    const cudaError_t code = cudaEventQuery(event.get());
    (void)cudaGetLastError();
    if (code != last)
      say("%8.1f ms: the event is %s", milliseconds(now - begun), cudaGetErrorName(code));
    last = code;
    (void)::poll(nullptr, 0, 1);  // sleeps for a millisecond
  }
  return static_cast<cudaError_t>(last);
}

bool device_works() try {
  const cuda::Stream stream = cuda::make_stream();
  const cuda::Memory memory = cuda::allocate(1 << 20);
  cuda::check(cudaMemsetAsync(memory.get(), 1, 1 << 20, stream.get()), "writing");
  cuda::check(cudaStreamSynchronize(stream.get()), "waiting");
  say("the process that lives on can use the device");
  return true;
} catch (const DeviceFailure& failure) {
  say("the process that lives on can NOT use the device: %s", failure.what());
  return false;
}

void wait_to_be_killed() {
  for (;;) ::pause();
}

}  // namespace millrace::probe
