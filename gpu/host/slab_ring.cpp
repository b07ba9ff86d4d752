// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/slab_ring.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>

namespace millrace {

std::size_t SlabRing::slab_bytes_for(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

SlabRing::SlabRing(std::uint32_t slabs, std::size_t bytes)
    : slab_bytes_(slab_bytes_for(bytes)),
      memory_(SharedMemory::create(slabs * slab_bytes_)),
      used_(slabs) {}

std::optional<std::uint32_t> SlabRing::acquire() {
  const auto free = std::ranges::find(used_, false);
  if (free == used_.end()) return std::nullopt;
  *free = true;
  ++used_count_;
  return static_cast<std::uint32_t>(free - used_.begin());
}

void SlabRing::release(std::uint32_t slab) {
  assert(used_[slab]);
  used_[slab] = false;
  --used_count_;
}

}  // namespace millrace
