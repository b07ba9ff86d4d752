// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/host_memory.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/memory.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

using Address = std::uintptr_t;

struct HostMemory {
  std::mutex mutex;
  std::map<Address, std::unique_ptr<Pinned>> live;
  std::vector<std::unique_ptr<Pinned>> gone;  // operations on streams may still read `uses`
};

HostMemory& host_memory() {
  static HostMemory& memory = *new HostMemory;
  return memory;
}

Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

// True if all pages of the range are mapped.
bool is_mapped(const std::byte* base, std::size_t bytes) {
  const Address first = address_of(base) / page_bytes * page_bytes;
  const std::size_t length = address_of(base) + bytes - first;
  std::vector<unsigned char> pages((length + page_bytes - 1) / page_bytes);
  return ::mincore(reinterpret_cast<void*>(first), length, pages.data()) == 0;
}

void add(std::byte* base, std::size_t bytes, bool registered) {
  const Locked locked(host_memory().mutex);
  auto pinned = std::make_unique<Pinned>();
  pinned->base = base;
  pinned->bytes = bytes;
  pinned->device = current_device();
  pinned->registered = registered;
  host_memory().live[address_of(base)] = std::move(pinned);
}

void remove(const Pinned& pinned) {
  const Locked locked(host_memory().mutex);
  host_memory().gone.push_back(
      std::move(host_memory().live.extract(address_of(pinned.base)).mapped()));
}

cudaError_t allocate_pages(void** pointer, std::size_t bytes) {
  if (!pointer || bytes == 0) return cudaErrorInvalidValue;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return cudaErrorMemoryAllocation;
  add(static_cast<std::byte*>(at), bytes, false);
  *pointer = at;
  return cudaSuccess;
}

cudaError_t release_pages(void* pointer) {
  if (!pointer) return cudaSuccess;
  const Unseen unseen;
  Pinned* pinned = pinned_at(pointer, 1);
  if (!pinned || pinned->base != pointer || pinned->registered) return cudaErrorInvalidValue;
  if (in_use(pinned->uses, pinned->device))
    (void)breach(Breach::freed_in_use, "pages of the host", cudaSuccess);
  ::munmap(pinned->base, pinned->bytes);
  remove(*pinned);
  return cudaSuccess;
}

cudaError_t lock_pages(void* pointer, std::size_t bytes, unsigned flags) {
  constexpr unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
                             cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  auto* base = static_cast<std::byte*>(pointer);
  if (!base || bytes == 0 || (flags & ~known) != 0 || !is_mapped(base, bytes))
    return cudaErrorInvalidValue;
  const Unseen unseen;
  if (pinned_at(base, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
  add(base, bytes, true);
  return cudaSuccess;
}

cudaError_t unlock_pages(void* pointer) {
  const Unseen unseen;
  Pinned* pinned = pinned_at(pointer, 1);
  if (!pinned || pinned->base != pointer || !pinned->registered)
    return cudaErrorHostMemoryNotRegistered;
  if (in_use(pinned->uses, pinned->device))
    (void)breach(Breach::unregistered_in_use, "pages of the host", cudaSuccess);
  if (!is_mapped(pinned->base, pinned->bytes))
    (void)breach(Breach::unmapped_registered, "pages of the host", cudaSuccess);
  remove(*pinned);
  return cudaSuccess;
}

}  // namespace

Pinned* pinned_at(const void* pointer, std::size_t bytes) {
  const Locked locked(host_memory().mutex);
  auto next = host_memory().live.lower_bound(address_of(pointer) + bytes);
  if (next == host_memory().live.begin()) return nullptr;
  Pinned& pinned = *std::prev(next)->second;
  return address_of(pinned.base) + pinned.bytes > address_of(pointer) ? &pinned : nullptr;
}

std::string host_memory_left() {
  const Locked locked(host_memory().mutex);
  std::string text;
  for (const auto& [key, pinned] : host_memory().live)
    if (death_of(pinned->device) == cudaSuccess)
      text += (pinned->registered ? "a registration of " : "locked host memory of ") +
              std::to_string(pinned->bytes) + " bytes\n";
  return text;
}

void forget_host_memory() {
  const Locked locked(host_memory().mutex);
  for (const auto& [key, pinned] : host_memory().live)
    if (!pinned->registered) ::munmap(pinned->base, pinned->bytes);
  host_memory().live.clear();
  host_memory().gone.clear();
}

}  // namespace millrace::test::simulated_cuda

using namespace millrace::test::simulated_cuda;

extern "C" {

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return call("cudaHostRegister", [&] { return lock_pages(pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return call("cudaHostUnregister", WhenDead::let_go, [&] { return unlock_pages(pointer); });
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return call("cudaMallocHost", [&] { return allocate_pages(pointer, bytes); });
}

cudaError_t cudaFreeHost(void* pointer) {
  return call("cudaFreeHost", WhenDead::let_go, [&] { return release_pages(pointer); });
}

}  // extern "C"
