// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/captures.h"
#include "tests/support/simulated_cuda/copies.h"
#include "tests/support/simulated_cuda/events.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/host_memory.h"
#include "tests/support/simulated_cuda/memory.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/support/simulated_cuda/streams.h"

namespace millrace::test::simulated_cuda {

std::string leaks() {
  std::string left = memory_left() + host_memory_left();
  if (const std::size_t streams = streams_left()) left += std::to_string(streams) + " streams\n";
  if (const std::size_t events = events_left()) left += std::to_string(events) + " events\n";
  return left;
}

void reset() {
  for (int device = 0; device < most_devices; ++device)
    kill_device(cudaErrorUnknown, device);  // so that streams drop their operations
  forget_captures();
  forget_streams();
  forget_events();
  forget_memory();
  forget_host_memory();
  forget_faults();
  forget_breaches();
  forget_copies();
  forget_calls();
  forget_settings();
}

}  // namespace millrace::test::simulated_cuda
