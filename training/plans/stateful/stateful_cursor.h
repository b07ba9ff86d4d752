// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "training/contract/plan.h"
#include "training/plans/rows/stream_steps.h"
#include "training/plans/stateful/stateful_plan.h"

namespace millrace::training {

// Reads the steps of one rank. Confined to one thread. Does not allocate per step for streams
// without inner events.
class StatefulCursor final : public PlanCursor {
 public:
  // `epoch` must outlive it.
  StatefulCursor(const StatefulEpoch& epoch, Rank rank, std::uint64_t step, std::uint64_t stride);

  bool next(PlannedBatch& into) override;

 private:
  // A slot of the deal, and the place that is read next.
  struct Slot {
    StreamSteps steps;
    std::size_t stream = 0;  // number in the deal
    std::size_t end = 0;
    bool opens = true;  // no row of this stream was given
  };

  void start(Slot& slot, std::uint32_t number);
  void advance(Slot& slot);

  const StatefulEpoch& epoch_;
  std::uint64_t step_, stride_;
  std::uint32_t rows_;       // slots of the rank
  std::size_t first_;        // index in slots_ of the rank's first slot
  std::vector<Slot> slots_;  // the rank's; all, if the width depends on other ranks
};

}  // namespace millrace::training
