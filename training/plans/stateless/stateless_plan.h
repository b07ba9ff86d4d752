// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/contract/plan_options.h"
#include "training/plans/order/epoch_streams.h"
#include "training/plans/order/length_order.h"
#include "training/plans/order/permutation.h"
#include "training/plans/order/windowed_permutation.h"
#include "training/plans/rows/row_widths.h"
#include "training/plans/rows/stream_cutter.h"
#include "training/plans/stateless/division.h"
#include "training/plans/stateless/items.h"
#include "training/plans/stateless/row_maker.h"

namespace millrace::training {

// One epoch of a stateless plan: shuffled rows or streams in batches, in one group or one per
// bucket. At step s, rank r of W gets batch number k * W + r of the group that is drawn for s.
class StatelessEpoch final : public EpochPlan {
 public:
  // The references must outlive it. `world` is that of steps() and totals(). `rows` are the rows of
  // every epoch, if they are equal.
  StatelessEpoch(const Catalog& catalog, const PlanOptions& options, const RowWidths& widths,
                 std::uint64_t epoch, std::uint32_t world, const std::optional<Items>& rows,
                 const Poll& poll);

  std::uint64_t steps() const override { return division_->steps(); }
  PlanTotals totals() const override;
  std::unique_ptr<PlanCursor> cursor(Rank rank, std::uint64_t step,
                                     std::uint64_t stride) const override;

  // The batches for any number of ranks.
  std::shared_ptr<const Division> division(std::uint32_t world) const;

  std::uint64_t epoch() const { return epoch_; }
  bool has_streams() const { return streams_.size() > 0; }
  const PlanOptions& options() const { return options_; }
  const RowWidths& widths() const { return widths_; }
  // The rows of each bucket, and the key of their order.
  const std::vector<Items>& items() const { return items_; }
  std::uint64_t key(std::size_t bucket) const {
    return draw_key(options_.seed, Purpose::rows, epoch_, bucket);
  }
  // The rows of a bucket have more columns than this.
  std::uint32_t above(std::size_t bucket) const {
    return bucket > 0 ? options_.buckets[bucket - 1] : 0;
  }
  // The rows of each batch of a bucket; 0: the limits decide.
  std::uint64_t batch_rows(std::size_t bucket) const;
  // How items() are shuffled. They already have an order by length.
  Shuffle shuffle() const {
    return {options_.shuffle && options_.order.empty(), options_.shuffle_window};
  }
  RowMaker row_maker() const { return RowMaker(streams_, cutter_, widths_); }

 private:
  std::vector<Items> all_items(const std::optional<Items>& rows, const Poll& poll) const;
  std::vector<Items> items_by_length(const LengthOrder& order, const Poll& poll) const;
  std::uint64_t epoch_;
  const PlanOptions& options_;
  const RowWidths& widths_;
  EpochStreams streams_;
  StreamCutter cutter_;
  std::vector<Items> items_;
  std::shared_ptr<const Division> division_;
};

// A plan without state: rows of their own, or whole streams. Also RETURNN's plans.
class StatelessPlan final : public Plan {
 public:
  // The catalog must outlive it. Requires: the options are without error.
  // `shortest` is the fewest columns of a row, `world` that of EpochPlan::steps().
  StatelessPlan(const Catalog& catalog, const PlanOptions& options, RowWidths widths,
                std::uint32_t shortest, std::uint32_t world);

  std::unique_ptr<EpochPlan> epoch(std::uint64_t epoch, const Poll& poll) const override;
  std::uint32_t slots(Rank) const override { return 0; }
  std::uint32_t most_rows(Rank) const override { return most_rows_; }
  std::uint64_t most_padded_frames(Rank) const override;
  std::uint32_t most_columns() const override { return widths_.most_columns(); }
  std::uint32_t most_body() const override { return widths_.most_body(); }

 private:
  const Catalog& catalog_;
  PlanOptions options_;
  RowWidths widths_;
  std::uint32_t world_;
  std::uint32_t most_rows_;
  std::optional<Items> rows_;  // equal in every epoch
};

}  // namespace millrace::training
