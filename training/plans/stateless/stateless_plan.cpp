// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/stateless_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "training/plans/order/permutation.h"
#include "training/plans/stateless/batch_limits.h"
#include "training/plans/stateless/stateless_cursor.h"

namespace millrace::training {
namespace {

bool is_returnn(const PlanOptions& options) { return options.mode != PlanMode::stateless; }

// Each batch has the same number of rows, because no limit depends on the rows.
bool has_equal_batches(const PlanOptions& options, const RowWidths& widths) {
  if (is_returnn(options) || options.max_waste > 0) return false;
  return options.max_padded_frames == 0 || widths.is_one() || !options.buckets.empty();
}

// The rows are those of every epoch.
bool has_equal_rows(const PlanOptions& options) {
  if (!options.chunk || is_returnn(options) || options.frames || !options.buckets.empty())
    return false;
  if (options.chunk->sizes.by == SizeRule::By::random) return false;
  return std::ranges::all_of(options.frequencies, [](double f) { return f == 1.0; });
}

}  // namespace

StatelessEpoch::StatelessEpoch(const Catalog& catalog, const PlanOptions& options,
                               const RowWidths& widths, std::uint64_t epoch, std::uint32_t world,
                               const std::optional<Items>& rows, const Poll& poll)
    : epoch_(epoch),
      options_(options),
      widths_(widths),
      streams_(catalog, options, epoch, poll),
      cutter_(catalog, options, epoch),
      items_(all_items(rows, poll)),
      division_(std::make_shared<const Division>(*this, world, poll)) {}

std::vector<Items> StatelessEpoch::all_items(const std::optional<Items>& rows,
                                             const Poll& poll) const {
  if (rows) return {*rows};
  if (const auto order = LengthOrder::parse(options_.order)) return items_by_length(*order, poll);
  if (!options_.chunk && !is_returnn(options_))
    return whole_streams(streams_, options_.buckets, widths_.most_columns(), poll);
  if (!options_.buckets.empty())
    return shuffled_buckets(streams_, cutter_, widths_, options_.buckets, poll);
  if (!is_returnn(options_)) return {shuffled_rows(streams_, cutter_, poll)};
  return {shuffled_streams(streams_, cutter_, shuffle(),
                           draw_key(options_.seed, Purpose::rows, epoch_, 0), poll)};
}

std::vector<Items> StatelessEpoch::items_by_length(const LengthOrder& order,
                                                   const Poll& poll) const {
  const auto sorted = [&](const std::vector<std::uint32_t>& places) {
    return order.sorted(places, streams_, {options_.shuffle, options_.shuffle_window}, key(0),
                        poll);
  };
  if (!is_returnn(options_)) {
    std::vector<Items> items = whole_streams(streams_, {}, widths_.most_columns(), poll);
    items.front().places = sorted(items.front().places);
    return items;
  }
  std::vector<std::uint32_t> all(streams_.size());
  std::iota(all.begin(), all.end(), 0u);
  return {ordered_streams(streams_, cutter_, sorted(all), poll)};
}

std::uint64_t StatelessEpoch::batch_rows(std::size_t bucket) const {
  if (!has_equal_batches(options_, widths_)) return 0;
  std::uint32_t columns = widths_.most_columns();
  if (bucket < options_.buckets.size()) columns = std::min(columns, options_.buckets[bucket]);
  return BatchLimits::most_rows(options_, widths_.width(columns));
}

std::shared_ptr<const Division> StatelessEpoch::division(std::uint32_t world) const {
  if (division_->world() == world) return division_;
  return std::make_shared<const Division>(*this, world, Poll());
}

PlanTotals StatelessEpoch::totals() const {
  PlanTotals totals;
  for (const Items& items : items_) {
    totals.rows += items.size();
    totals.frames += items.frames;
  }
  for (const BatchGroup& group : division_->groups()) {
    const std::uint64_t given = group.steps * division_->world(), batches = group.batches.size();
    if (given > batches) {
      const auto [begin, end] = group.batches[given - division_->world()];
      totals.padding_rows += (given - batches) * (end - begin);
    }
    std::vector<PlannedRow> rows;
    for (std::uint64_t i = 0; i < group.left_out_count; ++i) {
      const auto [begin, end] = group.batches[group.left_out + i];
      GroupRows(*this, group).read(begin, end, rows);
      totals.rows -= rows.size();
      for (const PlannedRow& planned : rows) totals.frames -= planned.row.size;
    }
  }
  return totals;
}

std::unique_ptr<PlanCursor> StatelessEpoch::cursor(Rank rank, std::uint64_t step,
                                                   std::uint64_t stride) const {
  return std::make_unique<StatelessCursor>(*this, rank, step, stride);
}

StatelessPlan::StatelessPlan(const Catalog& catalog, const PlanOptions& options, RowWidths widths,
                             std::uint32_t shortest, std::uint32_t world)
    : catalog_(catalog),
      options_(options),
      widths_(std::move(widths)),
      world_(world),
      most_rows_(static_cast<std::uint32_t>(BatchLimits::most_rows(
          options, has_equal_batches(options, widths_) && widths_.is_one() ? widths_.most_columns()
                                                                           : shortest))) {
  if (!has_equal_rows(options)) return;
  rows_ = shuffled_rows(EpochStreams(catalog, options, 0), StreamCutter(catalog, options, 0));
}

std::unique_ptr<EpochPlan> StatelessPlan::epoch(std::uint64_t epoch, const Poll& poll) const {
  auto divided =
      std::make_unique<StatelessEpoch>(catalog_, options_, widths_, epoch, world_, rows_, poll);
  if (divided->steps() > 0) return divided;
  std::uint64_t batches = 0;
  for (const BatchGroup& group : divided->division(world_)->groups())
    batches += group.batches.size();
  if (!divided->has_streams()) throw EmptyEpoch(epoch, "it has no streams");
  if (batches == 0) throw EmptyEpoch(epoch, "no stream is long enough for a row");
  throw EmptyEpoch(epoch, "it has " + std::to_string(batches) +
                              " batches for world = " + std::to_string(world_) +
                              "; use smaller batches, fewer ranks, or drop_last = false, which "
                              "completes a step with batches of padding");
}

std::uint64_t StatelessPlan::most_padded_frames(Rank rank) const {
  const std::uint64_t product = Plan::most_padded_frames(rank);
  if (options_.max_padded_frames == 0) return product;
  // A row that exceeds the limit is a batch of its own.
  return std::min(product, std::max<std::uint64_t>(options_.max_padded_frames, most_columns()));
}

}  // namespace millrace::training
