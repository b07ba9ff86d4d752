// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  // Until `process` is gone; at the end of all of them nobody is waited for.
  void keep(std::unique_ptr<LaneFeed> feed, Share bytes, std::unique_ptr<PeerProcess> process);

 private:
  struct Kept {
    std::unique_ptr<LaneFeed> feed;
    Share bytes;
    std::unique_ptr<PeerProcess> process;
  };

  std::list<Kept> kept_;
};

}  // namespace millrace
