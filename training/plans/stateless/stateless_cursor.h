// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "training/contract/plan.h"
#include "training/plans/order/permutation.h"
#include "training/plans/stateless/division.h"
#include "training/plans/stateless/stateless_plan.h"

namespace millrace::training {

// Reads the steps of one rank. Confined to one thread. Does not allocate per step for streams
// without inner events.
class StatelessCursor final : public PlanCursor {
 public:
  // `epoch` must outlive it.
  StatelessCursor(const StatelessEpoch& epoch, Rank rank, std::uint64_t step, std::uint64_t stride);

  bool next(PlannedBatch& into) override;

 private:
  void fill(std::size_t group, std::uint64_t batch, PlannedBatch& into);

  const StatelessEpoch& epoch_;
  std::shared_ptr<const Division> division_;
  Rank rank_;
  std::uint64_t step_, stride_;
  Permutation groups_;           // the order of the groups' steps
  std::vector<GroupRows> rows_;  // by group
};

}  // namespace millrace::training
