// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/row_columns.h"
#include "chunker/row.h"

namespace millrace::training {

// The widths of batches: the narrowest of some widths that holds the widest row, or, without such
// widths, as wide as this row. Immutable.
class RowWidths {
 public:
  // `widths` is ascending, or empty. `most_columns` is the widest row that a plan can have,
  // `most_body` its most frames of a body.
  RowWidths(const RowColumns& columns, std::vector<std::uint32_t> widths,
            std::uint32_t most_columns, std::uint32_t most_body)
      : columns_(columns),
        widths_(std::move(widths)),
        most_columns_(widths_.empty() ? most_columns : widths_.back()),
        most_body_(most_body) {}

  // The columns that a row needs.
  std::uint32_t columns(const Row& row) const {
    return columns_.needed(row.left, row.size, row.right);
  }
  // The width of a batch whose widest row needs `columns`. Requires: columns <= most_columns().
  std::uint32_t width(std::uint32_t columns) const {
    if (widths_.empty()) return columns;
    const auto found = std::ranges::lower_bound(widths_, columns);
    assert(found != widths_.end());
    return *found;
  }
  // The most frames of a body in a batch of this width.
  std::uint32_t body(std::uint32_t width) const {
    return std::min(most_body_, width - std::min(width, columns_.context));
  }

  // All batches have the same width.
  bool is_one() const { return widths_.size() == 1; }
  std::uint32_t most_columns() const { return most_columns_; }
  std::uint32_t most_body() const { return most_body_; }

 private:
  RowColumns columns_;
  std::vector<std::uint32_t> widths_;
  std::uint32_t most_columns_, most_body_;
};

}  // namespace millrace::training
