// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The parts of kernels. A task is a value with
//
//   std::uint64_t blocks() const;                 // blocks to run; may be 0
//   constexpr void operator()(Thread at) const;   // the work of one thread of one block
//
// in plain C++. kernels.cu runs it on a device, and run_here() in the calling thread, so that tests
// run the same address computations under sanitizers. The threads of a task do not wait for each
// other, and do not read what another thread writes.
namespace millrace::cuda {

inline constexpr std::uint32_t threads_per_block = 128;

struct Thread {
  std::uint32_t block = 0;
  std::uint32_t index = 0;  // < threads_per_block
};

// The number of blocks for `items` items, with `each` items per thread.
constexpr std::uint64_t blocks_for(std::uint64_t items, std::uint32_t each) {
  const std::uint64_t of_block = std::uint64_t{threads_per_block} * each;
  return (items + of_block - 1) / of_block;
}

// The first item of a thread. Its other items follow at a distance of threads_per_block, so that
// the threads of a block access neighbouring memory.
template <class Index>
constexpr Index first_item(Thread at, std::uint32_t each) {
  return static_cast<Index>(Index{at.block} * threads_per_block * each + at.index);
}

// Runs every thread of the task in the calling thread, one after the other.
template <class Task>
void run_here(const Task& task) {
  for (std::uint64_t block = 0; block < task.blocks(); ++block)
    for (std::uint32_t index = 0; index < threads_per_block; ++index)
      task(Thread{static_cast<std::uint32_t>(block), index});
}

// Values that one instruction loads or stores. May alias memory of any type.
template <class T, std::uint32_t count>
struct alignas(sizeof(T) * count) [[gnu::may_alias]] Pack {
  T at[count];
};

// Requires: the address is aligned to alignof(T).
template <class T>
constexpr T load(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}
template <class T>
constexpr void store(std::byte* at, const T& value) {
  *reinterpret_cast<T*>(at) = value;
}

}  // namespace millrace::cuda
