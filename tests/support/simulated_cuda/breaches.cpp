// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/breaches.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

std::array<std::atomic<bool>, breaches_known> tolerated;
std::array<std::atomic<std::uint64_t>, breaches_known> counted;

const char* name_of(Breach breach) {
  constexpr const char* names[breaches_known] = {
      "default_stream",   "outside_allocation",  "use_after_free",      "freed_in_use",
      "freed_while_open", "unregistered_in_use", "unmapped_registered", "overrun",
      "wrong_device",     "destroyed_elsewhere"};
  return names[static_cast<int>(breach)];
}

}  // namespace

void tolerate(Breach breach) { tolerated[static_cast<std::size_t>(breach)] = true; }

std::uint64_t count(Breach breach) { return counted[static_cast<std::size_t>(breach)]; }

cudaError_t breach(Breach breach, const std::string& what, cudaError_t code) {
  const Unseen unseen;
  ++counted[static_cast<std::size_t>(breach)];
  if (tolerated[static_cast<std::size_t>(breach)]) return code;
  std::fprintf(stderr, "simulated CUDA: %s: %s: %s\n", current_call(), name_of(breach),
               what.c_str());
  std::abort();
}

void forget_breaches() {
  for (auto& breach : tolerated) breach = false;
  for (auto& breach : counted) breach = 0;
}

}  // namespace millrace::test::simulated_cuda
