// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

using Address = std::uintptr_t;

struct Memory {
  std::mutex mutex;
  std::map<Address, std::unique_ptr<Allocation>> live;
  // Operations on streams may still read `uses`.
  std::vector<std::unique_ptr<Allocation>> freed;
};

Memory& memory() {
  static Memory& memory = *new Memory;
  return memory;
}

Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace

std::size_t Allocation::mapped() const {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

bool Allocation::contains(const void* at) const {
  return address(at) >= address(pointer) && address(at) < address(pointer) + bytes;
}

bool in_use(const std::atomic<int>& uses, int device) {
  return uses.load(std::memory_order_relaxed) > 0 && death_of(device) == cudaSuccess;
}

bool map(Allocation& allocation) {
  void* at = ::mmap(nullptr, allocation.mapped(), PROT_READ | PROT_WRITE, MAP_SHARED,
                    allocation.descriptor, 0);
  if (at == MAP_FAILED) return false;
  allocation.pointer = static_cast<std::byte*>(at);
  return true;
}

void add(std::unique_ptr<Allocation> allocation) {
  const Locked locked(memory().mutex);
  const Address key = address(allocation->pointer);
  memory().live[key] = std::move(allocation);
}

Allocation* allocation_at(const void* pointer) {
  const Locked locked(memory().mutex);
  auto next = memory().live.upper_bound(address(pointer));
  if (next == memory().live.begin()) return nullptr;
  Allocation& allocation = *std::prev(next)->second;
  return allocation.contains(pointer) ? &allocation : nullptr;
}

Allocation* opened_by_tag(std::uint64_t tag) {
  const Locked locked(memory().mutex);
  for (const auto& [key, allocation] : memory().live)
    if (allocation->opened > 0 && allocation->tag == tag) return allocation.get();
  return nullptr;
}

void retire(Allocation& allocation) {
  const Locked locked(memory().mutex);
  // Reserves the addresses.
  (void)::mmap(allocation.pointer, allocation.mapped(), PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  ::close(allocation.descriptor);
  auto node = memory().live.extract(address(allocation.pointer));
  memory().freed.push_back(std::move(node.mapped()));
}

bool was_freed(const void* pointer) {
  const Locked locked(memory().mutex);
  for (const auto& allocation : memory().freed)
    if (allocation->contains(pointer)) return true;
  return false;
}

std::uint64_t device_bytes_used(int device) {
  const Locked locked(memory().mutex);
  std::uint64_t sum = 0;
  for (const auto& [key, allocation] : memory().live)
    if (allocation->device == device && allocation->opened == 0) sum += allocation->mapped();
  return sum;
}

std::string memory_left() {
  const Locked locked(memory().mutex);
  std::string text;
  for (const auto& [key, allocation] : memory().live)
    if (death_of(allocation->device) == cudaSuccess)
      text += (allocation->opened > 0 ? "opened memory of " : "device memory of ") +
              std::to_string(allocation->bytes) + " bytes\n";
  return text;
}

void forget_memory() {
  std::vector<Allocation*> left;
  {
    const Locked locked(memory().mutex);
    for (const auto& [key, allocation] : memory().live) left.push_back(allocation.get());
  }
  for (Allocation* allocation : left) retire(*allocation);
  // No operation is on a stream any more, so the addresses can be released too.
  for (const auto& allocation : memory().freed) ::munmap(allocation->pointer, allocation->mapped());
  memory().freed.clear();
}

std::byte* host_view(const void* device_pointer) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(device_pointer));
}

}  // namespace millrace::test::simulated_cuda
