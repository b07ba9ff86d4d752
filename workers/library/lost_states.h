// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "chunker/row.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// Slots whose state a batch that failed may have left half updated. Confined to one thread.
class LostStates {
 public:
  // The states of the batch's rows are lost.
  void add(const WorkerBatch& batch) {
    for (const auto& row : batch.framed()) slots_.insert(row.slot);
  }

  // Makes the first row of each of these slots carry RESET.
  void renew(WorkerBatch& batch) {
    for (std::size_t row = 0; row < batch.framed().size() && !slots_.empty(); ++row) {
      const auto& entry = batch.framed()[row];
      if (slots_.erase(entry.slot) == 0 || (entry.flags & flag::reset) != 0) continue;
      batch.take_reset(row);
    }
  }

 private:
  std::set<std::uint32_t> slots_;
};

}  // namespace millrace
