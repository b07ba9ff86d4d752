// SPDX-License-Identifier: Apache-2.0
#include "tests/support/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> allocated_count{0}, allocated_size{0};
thread_local std::size_t short_from = millrace::test::Scarcity::most, short_to = 0;
thread_local std::size_t until_failure = 0;  // allocations; 0: no allocation fails

void* counted(std::size_t size) noexcept {
  allocated_count.fetch_add(1, std::memory_order_relaxed);
  if (size >= short_from && size <= short_to) return nullptr;
  if (until_failure > 0 && --until_failure == 0) return nullptr;
  void* memory = std::malloc(size > 0 ? size : 1);
  allocated_size.fetch_add(::malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}

void freed(void* memory) noexcept {
  allocated_size.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

void* counted_or_throw(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::size_t millrace::test::allocations() {
  return allocated_count.load(std::memory_order_relaxed);
}
std::size_t millrace::test::allocated_bytes() {
  return allocated_size.load(std::memory_order_relaxed);
}

void millrace::test::Scarcity::set(std::size_t from, std::size_t to) {
  short_from = from;
  short_to = to;
}

void millrace::test::FailingAllocation::set(std::size_t nth) { until_failure = nth; }

// All forms without alignment are replaced: a sanitizer's own form would not match the others.
void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { freed(memory); }
void operator delete[](void* memory) noexcept { freed(memory); }
void operator delete(void* memory, std::size_t) noexcept { freed(memory); }
void operator delete[](void* memory, std::size_t) noexcept { freed(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { freed(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { freed(memory); }
