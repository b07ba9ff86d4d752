// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// What kernels are made of: a task is a value with
//
//   std::uint64_t blocks() const;                 // that have something to do; may be 0
//   constexpr void operator()(Thread at) const;   // what one thread of one block does
//
// in plain C++, which kernels.cu puts on a device and run_here() executes in this thread, so that
// the very same addressing is what tests run under sanitizers. Threads of a task neither wait for
// one another nor read what another one writes.
namespace millrace::cuda {

inline constexpr std::uint32_t threads_per_block = 128;

struct Thread {
  std::uint32_t block = 0;
  std::uint32_t index = 0;  // < threads_per_block
};

// How many blocks do `items`, where each thread does `each` of them.
constexpr std::uint64_t blocks_for(std::uint64_t items, std::uint32_t each) {
  const std::uint64_t of_block = std::uint64_t{threads_per_block} * each;
  return (items + of_block - 1) / of_block;
}

// The first of a thread's items; the others follow at a distance of threads_per_block, so that the
// threads of a block are side by side in memory.
template <class Index>
constexpr Index first_item(Thread at, std::uint32_t each) {
  return static_cast<Index>(Index{at.block} * threads_per_block * each + at.index);
}

// Every thread of the task, one after the other.
template <class Task>
void run_here(const Task& task) {
  for (std::uint64_t block = 0; block < task.blocks(); ++block)
    for (std::uint32_t index = 0; index < threads_per_block; ++index)
      task(Thread{static_cast<std::uint32_t>(block), index});
}

// Values that one instruction reads or writes, in memory that may hold something of any type.
template <class T, std::uint32_t count>
struct alignas(sizeof(T) * count) [[gnu::may_alias]] Pack {
  T at[count];
};

// Requires: the address is aligned as T is.
template <class T>
constexpr T load(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}
template <class T>
constexpr void store(std::byte* at, const T& value) {
  *reinterpret_cast<T*>(at) = value;
}

}  // namespace millrace::cuda
