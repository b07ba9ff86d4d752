// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateful/stateful_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "training/plans/order/permutation.h"
#include "training/plans/rows/stream_steps.h"
#include "training/plans/stateful/stateful_cursor.h"

namespace millrace::training {

StatefulEpoch::StatefulEpoch(const Catalog& catalog, const PlanOptions& options,
                             const RowWidths& widths, std::uint64_t epoch, const Poll& poll)
    : catalog_(catalog),
      epoch_(epoch),
      widths_(widths),
      streams_(catalog, options, epoch, poll),
      cutter_(catalog, options, epoch),
      deal_(streams_, cutter_,
            {.slots = options.slots,
             .shuffle = options.shuffle,
             .key = draw_key(options.seed, Purpose::slots, epoch)},
            poll) {}

std::unique_ptr<PlanCursor> StatefulEpoch::cursor(Rank rank, std::uint64_t step,
                                                  std::uint64_t stride) const {
  return std::make_unique<StatefulCursor>(*this, rank, step, stride);
}

std::uint64_t StatefulEpoch::most_marks(std::uint64_t stream) const {
  StreamSteps steps;
  std::vector<PlannedRow> marks;
  std::size_t most = 0;
  steps.open(cutter_, {stream, catalog_.frames(stream), catalog_.has_events(stream)}, 0);
  for (; !steps.ended(); steps.advance(1)) {
    marks.clear();
    steps.add_marks(0, marks);
    most = std::max(most, marks.size());
  }
  return most;
}

StatefulPlan::StatefulPlan(const Catalog& catalog, const PlanOptions& options, RowWidths widths)
    : catalog_(catalog), options_(options), widths_(std::move(widths)) {}

std::unique_ptr<EpochPlan> StatefulPlan::epoch(std::uint64_t epoch, const Poll& poll) const {
  auto distributed = std::make_unique<StatefulEpoch>(catalog_, options_, widths_, epoch, poll);
  if (distributed->steps() == 0) throw EmptyEpoch(epoch, "no stream is long enough for a chunk");
  return distributed;
}

}  // namespace millrace::training
