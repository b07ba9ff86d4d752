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

// In a file: the memory, rounded up to pages, then a page that begins with `tag`.
struct Allocation {
  std::byte* pointer = nullptr;  // the program's
  std::byte* inside = nullptr;   // where copies and kernels find it; elsewhere where it is guarded
  std::size_t bytes = 0;
  int descriptor = -1;
  int device = 0;
  std::uint64_t tag = 0;
  int opened = 0;  // times, where another process made it
  std::atomic<int> uses = 0;

  std::size_t mapped() const;
  bool contains(const void* at) const;
};

inline constexpr std::size_t page_bytes = 4096;

// Whether something on a stream will use it. What a dead device still has on its streams it drops.
bool in_use(const std::atomic<int>& uses, int device);

// Maps what the descriptor has; false: it cannot be.
bool map(Allocation& allocation);

void add(std::unique_ptr<Allocation> allocation);
// The one that the pointer points into, or null.
Allocation* allocation_at(const void* pointer);
// The opened one with this tag, or null.
Allocation* opened_by_tag(std::uint64_t tag);
// Its address is never given again: nobody reaches anything there any more.
void retire(Allocation& allocation);
// Whether the pointer points into memory that was freed.
bool was_freed(const void* pointer);

std::uint64_t device_bytes_used(int device);
std::string memory_left();
void forget_memory();

}  // namespace millrace::test::simulated_cuda
