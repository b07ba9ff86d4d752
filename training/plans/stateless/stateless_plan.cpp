// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/stateless_plan.h"

#include <algorithm>
#include <cassert>
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
                               const std::optional<Items>& rows)
    : epoch_(epoch),
      options_(options),
      widths_(widths),
      world_(world),
      streams_(catalog, options, epoch),
      cutter_(catalog, options, epoch) {
  std::vector<Items> all = all_items(rows);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t key = draw_key(options.seed, Purpose::rows, epoch, i);
    std::uint32_t columns = widths.most_columns();
    if (i < options.buckets.size()) columns = std::min(columns, options.buckets[i]);
    BatchRanges batches = divide(all[i], key, columns);
    groups_.push_back({std::move(all[i]), key, std::move(batches)});
  }
}

std::vector<Items> StatelessEpoch::all_items(const std::optional<Items>& rows) const {
  if (rows) return {*rows};
  if (!options_.chunk && !is_returnn(options_))
    return whole_streams(streams_, options_.buckets, widths_.most_columns());
  if (!options_.buckets.empty())
    return shuffled_buckets(streams_, cutter_, widths_, options_.buckets);
  if (!is_returnn(options_)) return {shuffled_rows(streams_, cutter_)};
  return {shuffled_streams(streams_, cutter_, shuffle(),
                           draw_key(options_.seed, Purpose::rows, epoch_, 0))};
}

// Calls visit(row) for each item from `begin` on.
template <class Visit>
void StatelessEpoch::for_each(const Items& items, std::uint64_t begin, std::uint64_t key,
                              Visit visit) const {
  constexpr std::uint64_t at_once = 256;
  ItemOrder order(items, shuffle(), key);
  RowMaker maker = row_maker();
  std::vector<Item> some;
  std::vector<PlannedRow> rows;
  for (; begin < items.size(); begin += at_once) {
    order.read(begin, std::min(begin + at_once, items.size()), some);
    maker.make(some, items, rows);
    for (const PlannedRow& planned : rows) visit(planned.row);
  }
}

BatchRanges StatelessEpoch::divide(const Items& items, std::uint64_t key,
                                   std::uint32_t columns) const {
  if (has_equal_batches(options_, widths_))
    return BatchRanges(items.size(), BatchLimits::most_rows(options_, widths_.width(columns)));
  std::vector<std::uint64_t> begins;
  BatchLimits batch(options_, widths_);
  std::uint64_t number = 0;
  for_each(items, 0, key, [&](const Row& row) {
    const std::uint32_t needed = widths_.columns(row);
    if (number == 0 || !batch.fits(needed)) {
      begins.push_back(number);
      batch.clear();
    }
    batch.add(needed);
    ++number;
  });
  return BatchRanges(items.size(), std::move(begins));
}

std::uint64_t StatelessEpoch::steps(const Group& group, std::uint32_t world) const {
  const std::uint64_t batches = group.batches.size();
  return options_.drop_last ? batches / world : (batches + world - 1) / world;
}

std::uint64_t StatelessEpoch::steps(std::uint32_t world) const {
  std::uint64_t sum = 0;
  for (const Group& group : groups_) sum += steps(group, world);
  return sum;
}

PlanTotals StatelessEpoch::totals() const {
  PlanTotals totals;
  for (const Group& group : groups_) {
    totals.rows += group.items.size();
    totals.frames += group.items.frames;
    const std::uint64_t given = steps(group, world_) * world_, batches = group.batches.size();
    if (given > batches) {
      const auto [begin, end] = group.batches[given - world_];
      totals.padding_rows += (given - batches) * (end - begin);
    }
    if (given >= batches) continue;
    // The remainder is left out.
    for_each(group.items, group.batches[given].first, group.key, [&](const Row& row) {
      --totals.rows;
      totals.frames -= row.size;
    });
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

std::unique_ptr<EpochPlan> StatelessPlan::epoch(std::uint64_t epoch) const {
  return std::make_unique<StatelessEpoch>(catalog_, options_, widths_, epoch, world_, rows_);
}

std::uint64_t StatelessPlan::most_padded_frames(Rank rank) const {
  const std::uint64_t product = Plan::most_padded_frames(rank);
  if (options_.max_padded_frames == 0) return product;
  // A row that exceeds the limit is a batch of its own.
  return std::min(product, std::max<std::uint64_t>(options_.max_padded_frames, most_columns()));
}

}  // namespace millrace::training
