// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

// The locked pages of the host. Thread-safe.
namespace millrace::test::simulated_cuda {

struct Pinned {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  int device = 0;           // the device that was current
  bool registered = false;  // the program's own pages
  std::atomic<int> uses = 0;
};

// The locked range that contains any of these bytes, or null.
Pinned* pinned_at(const void* pointer, std::size_t bytes);

std::string host_memory_left();
void forget_host_memory();

}  // namespace millrace::test::simulated_cuda
