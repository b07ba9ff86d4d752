// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>

#include "gpu/cuda/calls.h"
#include "tests/gpu/probe/kernels.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/support/simulated_cuda/streams.h"

namespace millrace::probe {

namespace {

namespace simulated = test::simulated_cuda;

// Enqueues a kernel that calls `step` with its age, again and again until it returns false.
template <class Step>
void put(cudaStream_t stream, const Step& step) {
  const auto kernel = [step](simulated::Stream& on) {
    const Time begun = Clock::now();
    while (!on.dead() && step(Clock::now() - begun)) {
      constexpr timespec a_moment{0, 50'000};
      (void)::ppoll(nullptr, 0, &a_moment, nullptr);
    }
  };
  cuda::check(simulated::put(stream, std::make_unique<simulated::Operation>(
                                         simulated::Operation::Kind::kernel, kernel)),
              "launching a kernel");
}

std::uint64_t* counter(std::uint64_t* in_device_memory) {
  return reinterpret_cast<std::uint64_t*>(simulated::host_view(in_device_memory));
}

}  // namespace

void put_gate(cudaStream_t stream, GateWords* words, std::uint32_t number, Duration longest) {
  put(stream, [=](Duration passed) {
    const std::uint32_t opened = std::atomic_ref(words->opened).load();
    if (static_cast<std::int32_t>(opened - number) >= 0) return false;
    if (passed < longest) return true;
    std::atomic_ref(words->timed_out).store(number);
    return false;
  });
}

void put_spin(cudaStream_t stream, Duration duration, std::uint64_t* work) {
  put(stream, [=, work = counter(work)](Duration passed) {
    if (passed < duration) return true;
    *work += static_cast<std::uint64_t>(duration.count());
    return false;
  });
}

void put_reader(cudaStream_t stream, const std::byte* memory, std::size_t words,
                std::uint32_t expected, Duration duration, std::uint64_t* wrong) {
  const std::span read(reinterpret_cast<const std::uint32_t*>(simulated::host_view(memory)), words);
  put(stream, [=, wrong = counter(wrong)](Duration passed) {
    *wrong += words - static_cast<std::uint64_t>(std::ranges::count(read, expected));
    return passed < duration;
  });
}

bool load_module() { return true; }

}  // namespace millrace::probe
