// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "training/contract/plan.h"

namespace millrace::training {

inline bool same_row(const PlannedRow& a, const PlannedRow& b) {
  return a.stream == b.stream && a.frame == b.frame && a.slot == b.slot && a.opens == b.opens &&
         a.row == b.row;
}

inline bool same_rows(const std::vector<PlannedRow>& a, const std::vector<PlannedRow>& b) {
  return std::ranges::equal(a, b, same_row);
}

inline bool same(const std::vector<PlannedBatch>& a, const std::vector<PlannedBatch>& b) {
  return std::ranges::equal(a, b, [](const PlannedBatch& x, const PlannedBatch& y) {
    return std::tie(x.epoch, x.step, x.rows, x.width, x.body) ==
               std::tie(y.epoch, y.step, y.rows, y.width, y.body) &&
           same_rows(x.framed, y.framed) && same_rows(x.marks, y.marks);
  });
}

// Every stride-th batch from `step` on.
inline std::vector<PlannedBatch> every(const std::vector<PlannedBatch>& batches, std::uint64_t step,
                                       std::uint64_t stride) {
  std::vector<PlannedBatch> some;
  for (std::uint64_t i = step; i < batches.size(); i += stride) some.push_back(batches[i]);
  return some;
}

// Sets PlannedRow::opens for a reader that begins with the first of these batches. Each stream
// comes once per epoch.
inline void mark_opens(std::vector<PlannedBatch>& batches) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
  for (PlannedBatch& batch : batches)
    for (PlannedRow& row : batch.framed) row.opens = seen.insert({row.slot, row.stream}).second;
}

// Appends a rank's rows, whose slots begin at `first`.
inline void append_rank(PlannedBatch& into, const PlannedBatch& batch, std::uint32_t first) {
  for (auto list : {&PlannedBatch::framed, &PlannedBatch::marks})
    for (PlannedRow row : batch.*list) {
      row.slot += first;
      (into.*list).push_back(row);
    }
}

inline PlanTotals counted_totals(const std::vector<PlannedBatch>& batches) {
  PlanTotals totals;
  for (const PlannedBatch& batch : batches) {
    totals.rows += batch.framed.size();
    totals.padding_rows += batch.rows - batch.framed.size();
    for (const PlannedRow& row : batch.framed) totals.frames += row.row.size;
  }
  return totals;
}

}  // namespace millrace::training
