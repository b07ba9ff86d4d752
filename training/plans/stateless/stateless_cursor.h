// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "training/plans/order/permutation.h"
#include "training/plans/plan.h"
#include "training/plans/stateless/item_order.h"
#include "training/plans/stateless/row_maker.h"
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
  struct Place {
    std::size_t group = 0;
    std::uint64_t batch = 0;  // the batch of rank 0
  };

  Place drawn() const;
  void fill(const Place& place, std::uint64_t batch, PlannedBatch& into);

  const StatelessEpoch& epoch_;
  Rank rank_;
  std::uint64_t step_, stride_, steps_;
  Permutation groups_;  // the order of the groups' steps
  std::vector<ItemOrder> orders_;
  RowMaker maker_;
  std::vector<Item> items_;  // the rows of one batch
};

}  // namespace millrace::training
