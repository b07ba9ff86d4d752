// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "workers/hub/peer_process.h"
#include "workers/hub/slab_maker.h"

namespace millrace {

// The slabs of workers that were lost. They are never written again, but the worker's process may
// read them for as long as it lives: until then they count in the budget. Slabs made for a device
// are kept until then; the pages of others live on without this process.
//
// Confined to one thread.
class LostSlabs {
 public:
  // `maker` outlives it.
  explicit LostSlabs(SlabMaker& maker) : maker_(maker) {}

  // Until `process` is gone. The destructor waits for no process.
  void keep(std::unique_ptr<WorkerSlabs> slabs, std::shared_ptr<PeerProcess> process);

 private:
  struct Kept {
    std::unique_ptr<WorkerSlabs> slabs;  // null if they were made for the host: then `bytes` count
    Share bytes;
    std::shared_ptr<PeerProcess> process;
  };

  SlabMaker& maker_;
  std::list<Kept> kept_;
};

}  // namespace millrace
