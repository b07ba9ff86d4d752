// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "workers/hub/peer_process.h"
#include "workers/hub/slab_maker.h"

namespace millrace {

// The slabs of lost workers. They are never written again, but the worker's process can read them
// until it ends. They count in the budget until then. Slabs that were made for a device are kept
// until then; other slabs are freed at once, because their pages stay mapped in the worker.
//
// Confined to one thread.
class LostSlabs {
 public:
  // `maker` must outlive it.
  explicit LostSlabs(SlabMaker& maker) : maker_(maker) {}

  // Keeps the slabs until `process` has ended. The destructor does not wait for that.
  void keep(std::unique_ptr<WorkerSlabs> slabs, std::shared_ptr<PeerProcess> process);

 private:
  struct Kept {
    std::unique_ptr<WorkerSlabs> slabs;  // null if they were made for the host
    Share bytes;                         // the budget of slabs that were made for the host
    std::shared_ptr<PeerProcess> process;
  };

  SlabMaker& maker_;
  std::list<Kept> kept_;
};

}  // namespace millrace
