// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

// The memory of devices. Thread-safe.
namespace millrace::test::simulated_cuda {

// A file with the memory, rounded up to pages, then a page that begins with `tag`.
struct Allocation {
  std::byte* pointer = nullptr;
  std::size_t bytes = 0;
  int descriptor = -1;
  int device = 0;
  std::uint64_t tag = 0;
  int opened = 0;  // number of opens, if another process made it
  std::atomic<int> uses = 0;

  std::size_t mapped() const;
  bool contains(const void* at) const;
};

inline constexpr std::size_t page_bytes = 4096;

// True if an operation on a stream uses it. A dead device drops its operations, so it uses nothing.
bool in_use(const std::atomic<int>& uses, int device);

// Maps the file of the descriptor; false if that fails.
bool map(Allocation& allocation);

void add(std::unique_ptr<Allocation> allocation);
// The allocation that the pointer points into, or null.
Allocation* allocation_at(const void* pointer);
// The opened allocation with this tag, or null.
Allocation* opened_by_tag(std::uint64_t tag);
// Frees an allocation. Its address is not reused, and every access to it faults.
void retire(Allocation& allocation);
// True if the pointer points into freed memory.
bool was_freed(const void* pointer);

std::uint64_t device_bytes_used(int device);
std::string memory_left();
void forget_memory();

}  // namespace millrace::test::simulated_cuda
