// SPDX-License-Identifier: Apache-2.0
// Measures the time of one take from a rate, alone and while another thread takes from it too.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "base/rates/rate.h"
#include "bench/options.h"

namespace {

using namespace millrace;

// ns per take. One of ten is refused.
double measure(Rate& rate, const RateRule& rule, std::uint64_t takes) {
  const Duration step(static_cast<std::int64_t>(0.9e9 / rule.per_second()));
  const Time begin = Clock::now();
  std::int64_t taken = 0;
  for (std::uint64_t i = 0; i < takes; ++i)
    taken += rate.try_take(rule, begin + static_cast<std::int64_t>(i) * step);
  const auto time = std::chrono::duration<double, std::nano>(Clock::now() - begin);
  if (taken == 0) std::puts("nothing was taken");
  return time.count() / static_cast<double>(takes);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t takes = 50'000'000;
  bench::Options options("The time of one take from a rate.");
  options.add("--takes", takes, "takes of each measurement");
  options.parse(argc, argv);
  options.require(takes > 0, "--takes: must be positive");

  const RateRule rule(200, 40);
  Rate rate;
  std::printf("one thread: %.1f ns per take\n", measure(rate, rule, takes));
  Rate shared;
  std::atomic<bool> stop = false;
  std::jthread other([&] {
    while (!stop.load(std::memory_order_relaxed)) (void)shared.try_take(rule, Clock::now());
  });
  std::printf("beside another thread: %.1f ns per take\n", measure(shared, rule, takes));
  stop = true;
}
