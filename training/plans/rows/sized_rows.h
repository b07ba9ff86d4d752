// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "chunker/row.h"
#include "chunker/row_arithmetic.h"
#include "chunker/spec.h"

namespace millrace::training {

// The rows of a stream without inner events whose rule has sizes, fixed or random: those of a
// Cutter that decides at once. A few nanoseconds per row. Confined to one thread.
class SizedRows {
 public:
  // Begins at row 0. `rule` must outlive it.
  SizedRows(const ChunkRule& rule, std::string_view name, std::uint64_t frames);

  // True if there is no row with frames here.
  bool ended() const { return size_ == 0; }
  // Requires: !ended().
  Row row() const;
  std::uint32_t size() const { return size_; }  // frames of its body
  // True if a marker row follows the last row with frames. Requires: ended().
  bool has_marker() const { return !closed_; }
  // Goes to the next row. Requires: !ended().
  void advance();

 private:
  void choose();
  std::uint32_t cut(std::uint64_t begin, bool first) const;

  const ChunkRule* rule_;
  std::optional<SizeDraws> draws_;
  std::uint64_t frames_;
  std::uint64_t number_ = 0;  // rows before it
  std::uint64_t begin_ = 0;
  std::uint32_t body_ = 0;  // size in force
  std::uint32_t size_ = 0;  // frames of the body, cut at the end; 0: the stream has ended
  bool tail_ = false;       // the row is cut when the stream has ended
  bool closed_ = false;     // the same for the row before it
};

// Counts all rows.
RowCounts count_rows(SizedRows rows);

}  // namespace millrace::training
