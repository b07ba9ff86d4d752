// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/settings.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>

#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

constexpr std::uint64_t gigabyte = std::uint64_t{1} << 30;
constexpr unsigned pause_us = 200;

struct Settings {
  std::atomic<int> devices = 2;
  std::atomic<std::uint64_t> memory = gigabyte;
  std::atomic<int> driver = CUDART_VERSION;
  std::atomic<unsigned> pause = pause_us;
};

Settings& settings() {
  static Settings& settings = *new Settings;
  return settings;
}

}  // namespace

int device_count() {
  const Unseen unseen;
  return settings().devices;
}

std::uint64_t device_memory() {
  const Unseen unseen;
  return settings().memory;
}

int driver_version() {
  const Unseen unseen;
  return settings().driver;
}

unsigned longest_pause_us() {
  const Unseen unseen;
  return settings().pause;
}

void set_devices(int count) { settings().devices = std::min(count, most_devices); }
void set_memory(std::uint64_t bytes) { settings().memory = bytes; }

void set_driver(int version) { settings().driver = version; }

void set_pauses(unsigned longest_us) { settings().pause = longest_us; }

void forget_settings() {
  set_devices(2);
  set_memory(gigabyte);
  set_driver(CUDART_VERSION);
  set_pauses(pause_us);
}

}  // namespace millrace::test::simulated_cuda
