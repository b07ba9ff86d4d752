// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/settings.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <charconv>
#include <string_view>
#include <vector>

#include "tests/support/simulated_cuda/devices.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

constexpr std::uint64_t gigabyte = std::uint64_t{1} << 30;
constexpr unsigned pause_us = 200;

struct Settings {
  std::vector<int> visible = {0, 1};
  std::atomic<std::uint64_t> memory = gigabyte;
  std::atomic<int> driver = CUDART_VERSION;
  std::atomic<std::uint64_t> seed = 1;
  std::atomic<unsigned> pause = pause_us;
};

Settings& settings() {
  static Settings& settings = *new Settings;
  return settings;
}

// The device that an entry of CUDA_VISIBLE_DEVICES names, or -1.
int device_named(std::string_view name, int count) {
  for (int device = 0; device < count; ++device)
    if (name == uuid_text(device)) return device;
  int ordinal = -1;
  std::from_chars(name.data(), name.data() + name.size(), ordinal);
  return ordinal < count ? ordinal : -1;
}

}  // namespace

int device_count() {
  const Unseen unseen;
  return static_cast<int>(settings().visible.size());
}

int physical_device(int device) {
  const Unseen unseen;
  return settings().visible[static_cast<std::size_t>(device)];
}

std::uint64_t device_memory() {
  const Unseen unseen;
  return settings().memory;
}

int driver_version() {
  const Unseen unseen;
  return settings().driver;
}

std::uint64_t pause_seed() {
  const Unseen unseen;
  return settings().seed;
}

unsigned longest_pause_us() {
  const Unseen unseen;
  return settings().pause;
}

void set_devices(int count) {
  settings().visible.clear();
  for (int device = 0; device < count && device < most_devices; ++device)
    settings().visible.push_back(device);
}

void set_visible_devices(const char* list) {
  std::vector<int> visible;
  for (std::string_view rest = list; !rest.empty();) {
    const std::size_t end = rest.find(',');
    const int device = device_named(rest.substr(0, end), device_count());
    if (device < 0) break;
    visible.push_back(device);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  settings().visible = visible;
}

void set_memory(std::uint64_t bytes) { settings().memory = bytes; }

void set_driver(int version) { settings().driver = version; }

void set_pauses(std::uint64_t seed, unsigned longest_us) {
  settings().seed = seed;
  settings().pause = longest_us;
}

void forget_settings() {
  set_devices(2);
  set_memory(gigabyte);
  set_driver(CUDART_VERSION);
  set_pauses(1, pause_us);
}

}  // namespace millrace::test::simulated_cuda
