// SPDX-License-Identifier: Apache-2.0
#include "training/plans/stateless/row_index.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace millrace::training {

void RowIndex::finish() {
  const std::uint64_t count = std::max<std::uint64_t>(streams(), 1);
  shift_ = static_cast<unsigned>(std::bit_width(rows() / count));
  std::uint32_t stream = 0;
  for (std::uint64_t row = 0; row < rows(); row += std::uint64_t{1} << shift_) {
    while (begins_[stream + 1] <= row) ++stream;
    samples_.push_back(stream);
  }
  samples_.push_back(static_cast<std::uint32_t>(streams() - 1));
  samples_.shrink_to_fit();
}

RowIndex::Position RowIndex::find(std::uint64_t row) const {
  assert(row < rows());
  const auto sample = static_cast<std::size_t>(row >> shift_);
  return find(row, samples_[sample], samples_[sample + 1]);
}

void RowIndex::find(std::span<Position> rows) const {
  for (const Position& at : rows) __builtin_prefetch(&samples_[at.row >> shift_]);
  for (Position& at : rows) {
    at.stream = samples_[at.row >> shift_];
    __builtin_prefetch(&begins_[at.stream]);
  }
  for (Position& at : rows)
    at = find(at.row, static_cast<std::uint32_t>(at.stream), samples_[(at.row >> shift_) + 1]);
}

// The last stream that begins at or before the row. Most samples are one or two streams apart.
RowIndex::Position RowIndex::find(std::uint64_t row, std::uint32_t low, std::uint32_t high) const {
  while (high - low > 8) {
    const std::uint32_t middle = low + (high - low) / 2;
    (begins_[middle] <= row ? low : high) = middle;
  }
  while (begins_[low + 1] <= row) ++low;
  return {low, row - begins_[low], begins_[low + 1] - begins_[low]};
}

}  // namespace millrace::training
