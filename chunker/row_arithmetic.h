// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "chunker/row.h"
#include "chunker/spec.h"

namespace millrace {

// The rows that a Chunker yields for a stream without inner events: open, `frames` frames, end. All
// functions take constant time, and do not allocate. Requires: spec.check() has no error, and
// frames <= max_position.

struct RowCounts {
  std::uint64_t framed = 0;  // rows with frames
  std::uint64_t frames = 0;  // frames of their bodies, together
  bool marker = false;       // a marker row follows them, and carries END

  std::uint64_t rows() const { return framed + (marker ? 1 : 0); }
  bool operator==(const RowCounts&) const = default;
};

RowCounts count_rows(const Spec& spec, std::uint64_t frames);

// RowCounts::marker. Requires: framed = count_rows(spec, frames).framed. No division.
bool has_marker(const Spec& spec, std::uint64_t frames, std::uint64_t framed);

// The number of rows, the marker row included. At least 1: each stream ends with an END row.
std::uint64_t rows_of(const Spec& spec, std::uint64_t frames);

// The largest number of frames at the end of a segment for which the rule, which may have sizes,
// makes no row.
std::uint64_t most_left_out(const ChunkRule& rule);

// Row number `j`. Requires: j < rows_of(spec, frames).
Row row_at(const Spec& spec, std::uint64_t frames, std::uint64_t j);
// The same without a division. Requires: counts = count_rows(spec, frames); `frames` is not used.
Row row_at(const Spec& spec, std::uint64_t frames, const RowCounts& counts, std::uint64_t j);

}  // namespace millrace
