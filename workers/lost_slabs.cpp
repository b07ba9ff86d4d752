// SPDX-License-Identifier: Apache-2.0
#include "workers/lost_slabs.h"

#include <utility>

namespace millrace {

LostSlabs::~LostSlabs() {
  for (const Kept& kept : kept_) slab_bytes_.give_back(kept.bytes);
}

void LostSlabs::keep(std::unique_ptr<LaneFeed> feed, std::uint64_t bytes,
                     std::unique_ptr<PeerProcess> process) {
  feed->stop();
  const auto kept = kept_.insert(kept_.end(), Kept{std::move(feed), bytes, std::move(process)});
  kept->process->when_gone([this, kept] {
    slab_bytes_.give_back(kept->bytes);
    kept_.erase(kept);
  });
}

}  // namespace millrace
