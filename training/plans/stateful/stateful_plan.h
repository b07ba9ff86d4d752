// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/contract/plan_options.h"
#include "training/plans/order/epoch_streams.h"
#include "training/plans/rows/row_widths.h"
#include "training/plans/rows/stream_cutter.h"
#include "training/plans/stateful/deal.h"

namespace millrace::training {

// One epoch of a stateful plan: each step takes the next row with frames of each slot.
class StatefulEpoch final : public EpochPlan {
 public:
  // All arguments must outlive it.
  StatefulEpoch(const Catalog& catalog, const PlanOptions& options, const RowWidths& widths,
                std::uint64_t epoch, const Poll& poll);

  std::uint64_t steps() const override { return deal_.steps(); }
  PlanTotals totals() const override { return deal_.totals(); }
  std::unique_ptr<PlanCursor> cursor(Rank rank, std::uint64_t step,
                                     std::uint64_t stride) const override;
  std::uint64_t most_marks(std::uint64_t stream) const override;

  std::uint64_t epoch() const { return epoch_; }
  const RowWidths& widths() const { return widths_; }
  const StreamCutter& cutter() const { return cutter_; }
  const Deal& deal() const { return deal_; }
  // A stream of deal().
  StreamRef stream(std::size_t dealt) const {
    const std::uint64_t place = deal_.place(dealt);
    return {streams_.stream(place), streams_.frames(place), streams_.has_events(place),
            streams_.copy(place)};
  }

 private:
  const Catalog& catalog_;
  std::uint64_t epoch_;
  const RowWidths& widths_;
  EpochStreams streams_;
  StreamCutter cutter_;
  Deal deal_;
};

// A plan that carries the state of a model from step to step.
class StatefulPlan final : public Plan {
 public:
  // The catalog must outlive it. Requires: the options are without error.
  StatefulPlan(const Catalog& catalog, const PlanOptions& options, RowWidths widths);

  std::unique_ptr<EpochPlan> epoch(std::uint64_t epoch, const Poll& poll) const override;
  std::uint32_t slots(Rank rank) const override { return options_.slots / rank.world; }
  std::uint32_t most_rows(Rank rank) const override { return slots(rank); }
  std::uint32_t most_columns() const override { return widths_.most_columns(); }
  std::uint32_t most_body() const override { return widths_.most_body(); }

 private:
  const Catalog& catalog_;
  PlanOptions options_;
  RowWidths widths_;
};

}  // namespace millrace::training
