// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "chunker/row.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// The slots whose states may be half updated after a failed batch. Confined to one thread.
class LostStates {
 public:
  // Adds the slots of a failed batch.
  void add(const WorkerBatch& batch) {
    for (const auto& row : batch.framed()) slots_.insert(row.slot);
  }

  // Adds RESET to the first row of each of these slots in the batch, and removes these slots.
  void add_resets(WorkerBatch& batch) {
    for (std::size_t row = 0; row < batch.framed().size() && !slots_.empty(); ++row) {
      const auto& entry = batch.framed()[row];
      if (slots_.erase(entry.slot) == 0 || (entry.flags & flag::reset) != 0) continue;
      batch.set_reset(row);
    }
  }

 private:
  std::set<std::uint32_t> slots_;
};

}  // namespace millrace
