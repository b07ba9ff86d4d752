// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/memory.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/unseen.h"

using namespace millrace::test::simulated_cuda;

namespace {

constexpr std::byte untouched{0xCD};

// Creates and maps the file of an allocation.
bool make(Allocation& allocation) {
  allocation.descriptor = ::memfd_create("simulated CUDA", MFD_CLOEXEC);
  if (allocation.descriptor < 0) return false;
  const auto end = static_cast<off_t>(allocation.mapped());
  const bool tagged =
      ::getrandom(&allocation.tag, sizeof allocation.tag, 0) > 0 &&
      ::ftruncate(allocation.descriptor, end + off_t{page_bytes}) == 0 &&
      ::pwrite(allocation.descriptor, &allocation.tag, sizeof allocation.tag, end) > 0;
  return tagged && map(allocation);
}

cudaError_t allocate(void** pointer, std::size_t bytes) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const Unseen unseen;
  auto allocation = std::make_unique<Allocation>();
  allocation->bytes = bytes;
  allocation->device = current_device();
  if (bytes > device_memory() ||
      device_bytes_used(current_device()) + allocation->mapped() > device_memory())
    return cudaErrorMemoryAllocation;
  if (!make(*allocation)) return cudaErrorMemoryAllocation;
  std::fill_n(allocation->pointer, allocation->mapped(), untouched);
  *pointer = allocation->pointer;
  add(std::move(allocation));
  return cudaSuccess;
}

// True if a living process has the allocation open: it then holds a lock.
bool open_elsewhere(const Allocation& allocation) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(allocation.descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool overrun(const Allocation& allocation) {
  return !std::all_of(allocation.pointer + allocation.bytes,
                      allocation.pointer + allocation.mapped(),
                      [](std::byte byte) { return byte == untouched; });
}

cudaError_t release_memory(void* pointer) {
  if (!pointer) return cudaSuccess;
  const Unseen unseen;
  Allocation* allocation = allocation_at(pointer);
  if (!allocation && was_freed(pointer))
    return breach(Breach::use_after_free, "freed twice", cudaErrorInvalidValue);
  if (!allocation || allocation->pointer != pointer || allocation->opened > 0)
    return cudaErrorInvalidValue;
  const std::string name = std::to_string(allocation->bytes) + " bytes of a device";
  if (in_use(allocation->uses, allocation->device))
    (void)breach(Breach::freed_in_use, name, cudaSuccess);
  if (open_elsewhere(*allocation)) (void)breach(Breach::freed_while_open, name, cudaSuccess);
  if (overrun(*allocation)) (void)breach(Breach::overrun, name, cudaSuccess);
  retire(*allocation);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return call("cudaMalloc", [&] { return allocate(pointer, bytes); });
}

cudaError_t cudaFree(void* pointer) {
  return call("cudaFree", WhenDead::let_go, [&] { return release_memory(pointer); });
}

}  // extern "C"
