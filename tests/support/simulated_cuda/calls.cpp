// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/calls.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/support/simulated_cuda/captures.h"
#include "tests/support/simulated_cuda/environment.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/support/simulated_cuda/streams.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

std::array<std::atomic<bool>, most_devices> devices_in_use;

struct Calls {
  std::mutex mutex;
  std::map<std::string, std::uint64_t, std::less<>> counts;
  std::string path;
};

Calls& all() {
  static Calls& calls = *new Calls;
  return calls;
}

thread_local const char* function = "";
thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;

constexpr std::array<std::string_view, 10> waiting = {
    "cudaMemcpy",       "cudaMemset",        "cudaStreamSynchronize", "cudaEventSynchronize",
    "cudaMalloc",       "cudaFree",          "cudaMallocHost",        "cudaFreeHost",
    "cudaHostRegister", "cudaHostUnregister"};

// Further calls that are unsafe while a graph is captured, as all that may wait.
constexpr std::array<std::string_view, 8> unsafe = {
    "cudaEventQuery",         "cudaStreamQuery",
    "cudaIpcGetMemHandle",    "cudaIpcOpenMemHandle",
    "cudaIpcCloseMemHandle",  "cudaIpcGetEventHandle",
    "cudaIpcOpenEventHandle", "load_expand"};

bool is_unsafe(std::string_view name) {
  return std::ranges::find(waiting, name) != waiting.end() ||
         std::ranges::find(unsafe, name) != unsafe.end();
}

void count_call(const char* name) {
  const Locked locked(all().mutex);
  ++all().counts.try_emplace(name, 0).first->second;
}

void write_calls() {
  std::ofstream file(all().path);
  for (const auto& [name, calls] : all().counts) file << name << ' ' << calls << '\n';
}

}  // namespace

cudaError_t enter(const char* name, WhenDead when_dead) {
  configure_once();
  function = name;
  count_call(name);
  wait_while_held(name);
  if (const cudaError_t error = injected(name)) return error;
  if (is_unsafe(name))
    if (const cudaError_t error = refused_by_captures()) return error;
  if (when_dead == WhenDead::answer) return cudaSuccess;
  if (device_count() == 0) return cudaErrorNoDevice;
  mark_in_use(device);
  if (when_dead == WhenDead::refuse) return death_of(device);
  settle_dead_streams();  // they may still use the memory that is freed
  return cudaSuccess;
}

cudaError_t leave(cudaError_t error, WhenDead when_dead) {
  if (when_dead != WhenDead::answer) {
    if (const cudaError_t dead = death_of(device)) error = dead;
    // After a call has reported a dead device, the caller may free the memory of copies.
    if (error != cudaSuccess && error != cudaErrorNotReady) settle_dead_streams();
  }
  if (error != cudaSuccess) last_error = error;
  return error;
}

const char* current_call() { return function; }
int current_device() { return device; }
void set_current_device(int ordinal) { device = ordinal; }

void mark_in_use(int ordinal) {
  if (is_in_use(ordinal)) return;
  wait_for_start();
  const Unseen unseen;
  devices_in_use[static_cast<std::size_t>(ordinal)] = true;
}

bool is_in_use(int ordinal) {
  const Unseen unseen;
  return devices_in_use[static_cast<std::size_t>(ordinal)];
}

std::uint64_t calls(std::string_view name) {
  const Locked locked(all().mutex);
  const auto found = all().counts.find(name);
  return found == all().counts.end() ? 0 : found->second;
}

std::uint64_t waiting_calls() {
  std::uint64_t sum = 0;
  for (const std::string_view name : waiting) sum += calls(name);
  return sum;
}

void write_calls_at_exit(std::string path) {
  all().path = std::move(path);
  std::atexit(write_calls);
}

void forget_calls() {
  const Locked locked(all().mutex);
  all().counts.clear();
  for (auto& one : devices_in_use) one = false;
  last_error = cudaSuccess;
  device = 0;
}

}  // namespace millrace::test::simulated_cuda

using namespace millrace::test::simulated_cuda;

extern "C" {

cudaError_t cudaGetLastError() {
  count_call("cudaGetLastError");
  const cudaError_t dead = death_of(device), error = std::exchange(last_error, cudaSuccess);
  return dead != cudaSuccess ? dead : error;
}

}  // extern "C"
