// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "training/contract/plan_options.h"
#include "training/plans/rows/row_widths.h"

namespace millrace::training {

// Decides which rows fit into one batch, in their order. A row that exceeds a limit alone is a
// batch of its own. These are also RETURNN's rules. Confined to one thread.
class BatchLimits {
 public:
  // Both must outlive it. A batch has at least the width of `least` columns.
  BatchLimits(const PlanOptions& options, const RowWidths& widths, std::uint32_t least)
      : options_(options), widths_(widths), least_(least), widest_(least) {}

  // True if a row of this width fits into the batch beside the rows so far.
  bool fits(std::uint32_t columns) const {
    if (rows_ == 0) return true;
    const std::uint64_t rows = rows_ + 1, frames = frames_ + columns;
    const std::uint64_t padded = rows * widths_.width(std::max(widest_, columns));
    const auto exceeds = [](std::uint64_t value, std::uint64_t limit) {
      return limit > 0 && value > limit;
    };
    return !exceeds(frames, options_.packed_batch_size) &&
           !exceeds(padded, options_.max_padded_frames) && !exceeds(rows, options_.rows) &&
           !exceeds(padded - frames, options_.max_pad_size) && !wastes(padded, frames);
  }
  void add(std::uint32_t columns) {
    ++rows_;
    frames_ += columns;
    widest_ = std::max(widest_, columns);
  }
  void clear() {
    rows_ = frames_ = 0;
    widest_ = least_;
  }

  // The most rows of a batch whose rows all count as `width` columns. At least 1.
  static std::uint64_t most_rows(const PlanOptions& options, std::uint32_t width) {
    std::uint64_t rows = std::numeric_limits<std::uint32_t>::max();
    const auto at_most = [&](std::uint64_t limit, std::uint64_t each) {
      if (limit > 0) rows = std::min(rows, std::max<std::uint64_t>(limit / each, 1));
    };
    at_most(options.rows, 1);
    at_most(options.max_padded_frames, std::max(width, 1u));
    at_most(options.packed_batch_size, std::max(width, 1u));
    return rows;
  }

 private:
  bool wastes(std::uint64_t padded, std::uint64_t frames) const {
    return options_.max_waste > 0 &&
           static_cast<double>(padded - frames) > options_.max_waste * static_cast<double>(padded);
  }

  const PlanOptions& options_;
  const RowWidths& widths_;
  std::uint64_t rows_ = 0, frames_ = 0;
  std::uint32_t least_, widest_;
};

}  // namespace millrace::training
