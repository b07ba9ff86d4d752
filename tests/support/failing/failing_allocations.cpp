// SPDX-License-Identifier: Apache-2.0
// Makes one allocation of the process fail, on any thread: the nth after another process has
// requested it. MILLRACE_FAILING names a file of 16 bytes that both processes have mapped:
//
//   int64   allocations until the one that fails, counted down; 0 or less: no allocation fails
//   uint64  allocations so far
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

struct Control {
  std::atomic<std::int64_t> left;
  std::atomic<std::uint64_t> count;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

constinit std::atomic<Control*> control = nullptr;

[[gnu::constructor]] void map_control() {
  const char* const path = std::getenv("MILLRACE_FAILING");
  if (!path) return;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  void* const mapped =
      ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) std::abort();
  control = static_cast<Control*>(mapped);
}

bool fails() {
  Control* const mapped = control;
  if (!mapped) return false;
  ++mapped->count;
  return mapped->left-- == 1;
}

void* allocated(std::size_t size, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size > 0 ? size : 1);
  return ::memalign(alignment, size);
}

void* allocated_or_throw(std::size_t size, std::size_t alignment) {
  if (void* const memory = allocated(size, alignment)) return memory;
  throw std::bad_alloc();
}

constexpr std::size_t usual = alignof(std::max_align_t);

}  // namespace

// Called by Asio.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  void* const memory = allocated(size, alignment);
  if (!memory) errno = ENOMEM;
  return memory;
}

void* operator new(std::size_t size) { return allocated_or_throw(size, usual); }
void* operator new[](std::size_t size) { return allocated_or_throw(size, usual); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocated(size, usual);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocated(size, usual);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocated_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocated_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocated(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocated(size, static_cast<std::size_t>(alignment));
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
