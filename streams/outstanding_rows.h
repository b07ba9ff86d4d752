// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ring.h"
#include "base/time.h"
#include "chunker/row.h"

namespace millrace {

// The rows of one stream that are cut and not done, in order. Confined to one thread.
class OutstandingRows {
 public:
  bool empty() const { return rows_.empty(); }

  // The number of rows that are in no batch, as far as batched() and done() have reported.
  std::size_t ready() const { return rows_.size() - batched_; }

  // True once a row was in a batch or done.
  bool begun() const { return begun_; }

  // Adds a row that was cut now. `window` is the index of its window's first frame, not less than
  // that of the row with frames before it.
  void add(const Row& row, std::uint64_t window, Time now) { rows_.push_back({row, window, now}); }

  // When the oldest row that is in no batch was cut; nullopt if there is no such row.
  std::optional<Time> oldest_ready() const {
    if (ready() == 0) return std::nullopt;
    return rows_[batched_].cut;
  }

  // The row with this number, and those before it, are in a batch.
  void batched(std::uint64_t seq) {
    begun_ = true;
    if (empty() || seq < rows_.front().row.seq) return;
    batched_ = std::clamp<std::size_t>(seq - rows_.front().row.seq + 1, batched_, rows_.size());
  }

  // The oldest row is done, even if it was never in a batch. Requires: it has this number.
  Row done([[maybe_unused]] std::uint64_t seq) {
    assert(!empty() && rows_.front().row.seq == seq);
    batched_ -= std::min<std::size_t>(batched_, 1);
    begun_ = true;
    return rows_.pop_front().row;
  }

  // The number of frames of the stream that complete the oldest row; nullopt if there is no row.
  std::optional<std::uint64_t> completed_by() const {
    if (empty()) return std::nullopt;
    return rows_.front().row.end() + rows_.front().row.right;
  }

  // The index of the first frame that a row needs; `none` if no row needs a frame before that.
  std::uint64_t first_needed(std::uint64_t none) const { return first_needed(none, 0); }
  // The same for the rows that are in no batch.
  std::uint64_t first_ready(std::uint64_t none) const { return first_needed(none, batched_); }

  void clear() {
    rows_.clear();
    batched_ = 0;
  }

 private:
  struct Outstanding {
    Row row;
    std::uint64_t window = 0;
    Time cut{};
  };

  std::uint64_t first_needed(std::uint64_t none, std::size_t from) const {
    for (std::size_t i = from; i < rows_.size(); ++i)
      if (rows_[i].row.has_frames()) return std::min(rows_[i].window, none);
    return none;
  }

  Ring<Outstanding> rows_;
  std::size_t batched_ = 0;  // number of first rows that are in a batch
  bool begun_ = false;
};

}  // namespace millrace
