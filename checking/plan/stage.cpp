// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/stage.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "checking/plan/together.h"
#include "chunker/row_layout.h"

namespace millrace::checking {
namespace {

// Part of a stream: the rows [begin, end).
struct Run {
  std::uint32_t stream = 0, begin = 0, end = 0;
};

std::vector<Run> runs_of(std::span<const CheckedStream> streams) {
  std::vector<Run> runs;
  for (std::uint32_t stream = 0; stream < streams.size(); ++stream) {
    const auto begins = streams[stream].runs();
    for (std::size_t i = 0; i < begins.size(); ++i)
      runs.push_back({stream, begins[i],
                      i + 1 < begins.size()
                          ? begins[i + 1]
                          : static_cast<std::uint32_t>(streams[stream].rows().size())});
  }
  return runs;
}

class Planner {
 public:
  Planner(std::span<const CheckedStream> streams, const BatchRule& rule, Draws& draws)
      : streams_(streams), rule_(rule), draws_(draws) {}

  // Each run in a slot that the worker has never used.
  std::vector<PlannedBatch> in_fresh_slots(std::vector<Run> runs, std::uint32_t worker) {
    std::vector<PlannedBatch> batches;
    std::uint32_t slot = 0;
    for (const Run& run : runs) {
      const bool fresh = slot == rule_.slots;
      if (fresh) slot = 0;
      const std::size_t first = batches.size();
      add(run, worker, slot++, false, batches);
      batches[first].fresh = fresh;
    }
    return batches;
  }

  // Each stream whole, in one of two slots. The fresh runs have used the first ones, and the last
  // one is beside the line of padding rows.
  std::vector<PlannedBatch> in_used_slots(bool padding) {
    const std::array<std::uint32_t, 2> slots{
        0, padding ? rule_.slots - 1 : std::min(1u, rule_.slots - 1)};
    std::vector<PlannedBatch> batches;
    for (std::uint32_t i = 0; i < streams_.size(); ++i)
      add({i, 0, static_cast<std::uint32_t>(streams_[i].rows().size())}, 0, slots[draws_.number(2)],
          padding, batches);
    return batches;
  }

  std::vector<PlannedBatch> together(bool moves_and_padding) {
    return Together(streams_, rule_, moves_and_padding, next_id_, draws_).batches();
  }

  // Sets what follows from the rows of the batches.
  void complete(std::vector<PlannedBatch>& batches) const {
    std::unordered_set<StreamId> later;
    for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
      for (auto* rows : {&batch->marks, &batch->framed})
        for (auto row = rows->rbegin(); row != rows->rend(); ++row) {
          const bool last = later.insert(row->id).second;
          row->leaves = last && !cut_of(*row).is(flag::end);
        }
      std::uint32_t columns = 0;
      for (const PlannedRow& row : batch->framed) {
        const Row& cut = cut_of(row);
        columns = std::max(columns, rule_.columns.needed(cut.left, cut.size, cut.right));
      }
      batch->width = padded_length(rule_.width_buckets, columns);
    }
  }

 private:
  const Row& cut_of(const PlannedRow& row) const {
    return streams_[row.stream].rows()[row.row].row;
  }

  // One row per batch.
  void add(const Run& run, std::uint32_t worker, std::uint32_t slot, bool padding,
           std::vector<PlannedBatch>& into) {
    const StreamId id{next_id_++};
    for (std::uint32_t row = run.begin; row < run.end; ++row) {
      const bool framed = streams_[run.stream].rows()[row].row.has_frames();
      PlannedBatch& batch = into.emplace_back();
      batch.worker = worker;
      batch.alone = true;
      if (framed) batch.rows = tensor_rows(rule_, 1, padding, draws_);
      (framed ? batch.framed : batch.marks)
          .push_back({run.stream, row, slot, id, row == run.begin});
    }
  }

  const std::span<const CheckedStream> streams_;
  const BatchRule& rule_;
  Draws& draws_;
  std::uint64_t next_id_ = 1;
};

}  // namespace

std::uint32_t copies_of(const Stage& stage) {
  std::uint32_t copies = 1;
  for (const PlannedBatch& batch : stage.batches)
    for (const auto* rows : {&batch.framed, &batch.marks})
      for (const PlannedRow& row : *rows) copies = std::max(copies, row.copy + 1);
  return copies;
}

std::vector<Stage> make_stages(std::span<const CheckedStream> streams, const BatchRule& rule,
                               Draws& draws) {
  Planner planner(streams, rule, draws);
  auto runs = runs_of(streams);
  std::vector<Stage> stages;
  stages.push_back({"alone", "", planner.in_fresh_slots(runs, 0)});
  std::ranges::reverse(runs);
  stages.push_back({"alone again, in another order",
                    "The answers of a stream change although it is alone in a slot that was never "
                    "used: the worker has state outside of its slots, or draws random numbers.",
                    planner.in_fresh_slots(runs, 1)});
  stages.push_back({"alone, in a used slot",
                    "A stream continues a state that is not its own: the state must be fresh "
                    "before each row with RESET. Options change by messages with `set` alone.",
                    planner.in_used_slots(false)});
  if (rule.rows > 1)
    stages.push_back({"with padding rows",
                      "The answers depend on padding rows. These have the slot number `slots`, and "
                      "the values of any frames.",
                      planner.in_used_slots(true)});
  stages.push_back({"with other streams",
                    "The answers depend on the other rows of the batch, or on the place of a row "
                    "in it: the state belongs to the slot, and answers are in the order of the "
                    "rows.",
                    planner.together(false)});
  stages.push_back({"with other streams, padding rows and moves",
                    "The answers depend on the other rows, on padding rows, or on what a stream "
                    "had at its former worker, such as old options.",
                    planner.together(true)});
  for (Stage& stage : stages) planner.complete(stage.batches);
  return stages;
}

}  // namespace millrace::checking
