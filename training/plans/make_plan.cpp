// SPDX-License-Identifier: Apache-2.0
#include "training/plans/make_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "chunker/row_layout.h"
#include "training/contract/plan_options.h"
#include "training/plans/plan_checks.h"
#include "training/plans/rows/row_widths.h"
#include "training/plans/rows/stream_cutter.h"
#include "training/plans/stateful/stateful_plan.h"
#include "training/plans/stateless/bucket_limits.h"
#include "training/plans/stateless/stateless_plan.h"

namespace millrace::training {
namespace {

// The lengths of the catalog's streams with frames. 0: there are none.
struct Lengths {
  std::uint64_t shortest = 0, longest = 0;
};

Lengths lengths_of(const Catalog& catalog) {
  Lengths lengths;
  for (std::uint64_t i = 0; i < catalog.size(); ++i) {
    const std::uint64_t frames = catalog.frames(i);
    if (frames == 0) continue;
    if (lengths.shortest == 0 || frames < lengths.shortest) lengths.shortest = frames;
    lengths.longest = std::max(lengths.longest, frames);
  }
  return lengths;
}

bool has_rows(const Catalog& catalog, const PlanOptions& options) {
  const StreamCutter cutter(catalog, options, 0);
  for (std::uint64_t i = 0; i < catalog.size(); ++i)
    if (cutter.counts({i, catalog.frames(i), catalog.has_events(i)}).framed > 0) return true;
  return false;
}

bool cuts_as_service(const PlanOptions& options) {
  return options.mode == PlanMode::stateful || options.mode == PlanMode::stateless;
}

// By default, batches of several sizes, or buckets, have the width of the widest of their rows.
std::vector<std::uint32_t> batch_widths(const PlanOptions& options) {
  const ChunkRule& rule = *options.chunk;
  if (options.buckets.empty()) return default_widths(rule);
  std::vector<std::uint32_t> widths = options.buckets;
  std::erase_if(widths, [&](std::uint32_t width) { return width >= rule.width(); });
  widths.push_back(rule.width());
  return widths;
}

Result<RowWidths, PlanError> widths_beside(const PlanOptions& options, const RowColumns& columns,
                                           std::uint64_t widest, std::uint64_t body) {
  const std::vector<std::uint32_t>& given = options.width_buckets;
  if (!given.empty() && given.back() < widest)
    return PlanError{
        "width_buckets",
        "width_buckets ends with " + std::to_string(given.back()) +
            "; the last value must be at least the width of the widest row, which is " +
            std::to_string(widest)};
  if (widest > max_window)
    return PlanError{"chunk", "chunk is missing: the longest stream has " + std::to_string(widest) +
                                  " frames; a row can have at most " + std::to_string(max_window)};
  std::vector<std::uint32_t> widths = given;
  if (widths.empty() && options.chunk && cuts_as_service(options)) widths = batch_widths(options);
  return RowWidths(columns, std::move(widths), static_cast<std::uint32_t>(widest),
                   static_cast<std::uint32_t>(body));
}

Result<RowWidths, PlanError> widths_of(const PlanOptions& options, const Lengths& lengths) {
  if (options.chunk && cuts_as_service(options)) {
    const ChunkRule& rule = *options.chunk;
    const std::uint32_t width = rule.width();
    return widths_beside(options, rule.columns(), width, width - rule.spec.left - rule.spec.right);
  }
  if (options.chunk)
    return widths_beside(options, {}, options.chunk->spec.size, options.chunk->spec.size);
  if (options.frames && options.width_buckets.empty())
    return PlanError{"width_buckets",
                     "width_buckets is missing: whole streams have another length in each epoch, "
                     "and a batch needs a greatest width"};
  const std::uint64_t longest = options.frames ? options.width_buckets.back() : lengths.longest;
  return widths_beside(options, {}, longest, longest);
}

std::vector<std::uint32_t> chosen_buckets(const Catalog& catalog, const PlanOptions& options,
                                          const RowWidths& widths) {
  std::vector<std::uint32_t> lengths;
  for (std::uint64_t i = 0; i < catalog.size(); ++i)
    if (const std::uint64_t frames = catalog.frames(i); frames > 0)
      lengths.push_back(static_cast<std::uint32_t>(
          std::min<std::uint64_t>(frames, widths.most_columns())));  // longer in the catalog only
  return bucket_limits(std::move(lengths), options, widths);
}

}  // namespace

Result<std::unique_ptr<Plan>, PlanError> make_plan(const Catalog& catalog,
                                                   const PlanOptions& options, Rank rank) {
  if (const auto checked = check_options(catalog, options, rank); !checked) return checked.error();
  const bool whole = !options.chunk;
  const Lengths lengths = whole ? lengths_of(catalog) : Lengths{};
  auto widths = widths_of(options, lengths);
  if (!widths) return widths.error();
  if (whole ? lengths.longest == 0 : !has_rows(catalog, options))
    return PlanError{"streams", "streams has " + std::to_string(catalog.size()) +
                                    " streams, but none of them is long enough for a chunk"};
  if (options.mode == PlanMode::stateful)
    return std::make_unique<StatefulPlan>(catalog, options, std::move(*widths));
  PlanOptions stateless = options;
  if (options.bucket_count > 0) stateless.buckets = chosen_buckets(catalog, options, *widths);
  // The fewest columns of a row: a stream's end may cut a chunk to one frame.
  const std::uint64_t shortest = whole && !options.frames ? lengths.shortest : 1;
  return std::make_unique<StatelessPlan>(catalog, stateless, std::move(*widths),
                                         static_cast<std::uint32_t>(shortest), rank.world);
}

}  // namespace millrace::training
