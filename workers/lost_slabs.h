// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "base/budget.h"
#include "workers/lane_feed.h"
#include "workers/peer_process.h"

namespace millrace {

// The slabs of workers that were lost. They are never written again, but the worker's process may
// read them for as long as it lives: until then they are kept, and count in the budget.
//
// Confined to one thread.
class LostSlabs {
 public:
  // The budget outlives it.
  explicit LostSlabs(Budget& slab_bytes) : slab_bytes_(slab_bytes) {}
  // Gives all of it back and waits for nobody.
  ~LostSlabs();

  // `bytes` of the budget are taken, and are given back once `process` is gone.
  void keep(std::unique_ptr<LaneFeed> feed, std::uint64_t bytes,
            std::unique_ptr<PeerProcess> process);

 private:
  struct Kept {
    std::unique_ptr<LaneFeed> feed;
    std::uint64_t bytes;
    std::unique_ptr<PeerProcess> process;
  };

  Budget& slab_bytes_;
  std::list<Kept> kept_;
};

}  // namespace millrace
