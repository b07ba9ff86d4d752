// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "workers/feeds.h"
#include "workers/peer_process.h"

namespace millrace {

// The slabs of workers that were lost. They are never written again, but the worker's process may
// read them for as long as it lives: until then they count in the budget. Slabs made for a device
// are kept until then; the pages of others live on without this process.
//
// Confined to one thread.
class LostSlabs {
 public:
  // `feeds` outlives it.
  explicit LostSlabs(Feeds& feeds) : feeds_(feeds) {}

  // Until `process` is gone. The destructor waits for no process.
  void keep(Feed feed, std::shared_ptr<PeerProcess> process);

 private:
  struct Kept {
    Feed feed;  // without slabs if they were made for the host
    std::shared_ptr<PeerProcess> process;
  };

  Feeds& feeds_;
  std::list<Kept> kept_;
};

}  // namespace millrace
