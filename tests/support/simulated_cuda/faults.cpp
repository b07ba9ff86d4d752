// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/faults.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/support/simulated_cuda/streams.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

struct Rule {
  int error = 0;
  std::uint64_t calls = 0;
};

struct Faults {
  std::mutex mutex;
  std::map<std::string, Rule, std::less<>> rules;
  std::array<std::atomic<int>, most_devices> deaths{};
  std::atomic<std::uint64_t> stale_queries{0};  // every n-th query; 0: no query
  std::atomic<std::uint64_t> queries{0};
  std::atomic<bool> held{false};  // copies
  std::atomic<bool> starts_held{false};
  std::atomic<bool> queries_held{false};
  // Written once, before the first stream exists.
  std::string death_path, hold_path;
  int death_path_error = 0;
};

// Never destroyed: streams run until the process ends.
Faults& faults() {
  static Faults& faults = *new Faults;
  return faults;
}

bool exists(const std::string& path) { return !path.empty() && ::access(path.c_str(), F_OK) == 0; }

}  // namespace

void fail(std::string_view function, int error, std::uint64_t calls) {
  Faults& f = faults();
  const Locked locked(f.mutex);
  f.rules.insert_or_assign(std::string(function), Rule{error, calls});
}

cudaError_t injected(const char* function) {
  Faults& f = faults();
  const Locked locked(f.mutex);
  const auto rule = f.rules.find(std::string_view(function));
  if (rule == f.rules.end() || rule->second.calls == 0) return cudaSuccess;
  if (rule->second.calls != all_calls) --rule->second.calls;
  return static_cast<cudaError_t>(rule->second.error);
}

cudaError_t death_of(int device) {
  const Unseen unseen;
  Faults& f = faults();
  if (exists(f.death_path)) kill_device(f.death_path_error, device);
  return static_cast<cudaError_t>(f.deaths[static_cast<std::size_t>(device)].load());
}

void kill_device(int error, int device) {
  const Unseen unseen;
  int alive = cudaSuccess;  // the first error remains the reason
  if (faults().deaths[static_cast<std::size_t>(device)].compare_exchange_strong(alive, error))
    wake_streams();
}

bool query_is_stale() {
  const Unseen unseen;
  const std::uint64_t every = faults().stale_queries;
  return every > 0 && ++faults().queries % every == 0;
}

void make_queries_stale(std::uint64_t every) { faults().stale_queries = every; }

void wait_for_start() {
  const Unseen unseen;
  faults().starts_held.wait(true);
}

void hold_starts() {
  const Unseen unseen;
  faults().starts_held = true;
}

void release_starts() {
  const Unseen unseen;
  faults().starts_held = false;
  faults().starts_held.notify_all();
}

void wait_while_held(std::string_view function) {
  const Unseen unseen;
  if (function == "cudaEventQuery") faults().queries_held.wait(true);
}

void hold_queries() {
  const Unseen unseen;
  faults().queries_held = true;
}

void release_queries() {
  const Unseen unseen;
  faults().queries_held = false;
  faults().queries_held.notify_all();
}

bool copies_held() {
  const Unseen unseen;
  return faults().held || exists(faults().hold_path);
}

void hold_copies() {
  const Unseen unseen;
  faults().held = true;
}

void release_copies() {
  const Unseen unseen;
  faults().held = false;
  wake_streams();
}

void die_when_exists(const std::string& path, int error) {
  faults().death_path = path;
  faults().death_path_error = error;
}

void hold_copies_while_exists(const std::string& path) { faults().hold_path = path; }

void forget_faults() {
  Faults& f = faults();
  const Locked locked(f.mutex);
  f.rules.clear();
  for (auto& death : f.deaths) death = cudaSuccess;
  f.stale_queries = 0;
  f.held = false;
  f.starts_held = false;
  f.queries_held = false;
  f.death_path.clear();
  f.hold_path.clear();
}

}  // namespace millrace::test::simulated_cuda
