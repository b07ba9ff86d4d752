// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "chunker/row_arithmetic.h"
#include "chunker/spec.h"
#include "cutting/cutter.h"
#include "training/contract/catalog.h"
#include "training/plans/rows/cut_row.h"

namespace millrace::training {

// The rows of a stream with inner events, cut from the stream's beginning. `size` events of the
// stream are used if the rule allows them. If the rule has sizes, and the stream has no such event,
// or draws again, the sizes are chosen as by the service.
//
// Marker rows before the first row with frames are left out, and that row gets START, unless the
// stream is opened anew. Confined to one thread. Does not allocate after construction, except for
// marker rows.
class EventRows {
 public:
  // Begins at the first row with frames. `rule` must outlive it.
  EventRows(const ChunkRule& rule, std::string_view name, std::vector<InnerEvent> events,
            std::uint64_t frames);

  // True if there is no row with frames here.
  bool ended() const { return !row_.row.has_frames(); }
  // Requires: !ended().
  const CutRow& row() const { return row_; }
  // The marker rows between this row and the next one with frames, or the end.
  std::span<const CutRow> marks() const { return marks_; }
  // Goes to the next row with frames. Requires: !ended().
  void advance();

 private:
  void look_ahead();
  bool next(CutRow& row);
  void feed();

  std::vector<InnerEvent> events_;
  std::uint64_t frames_;
  Cutter cutter_;
  std::size_t next_event_ = 0;  // in events_
  std::uint64_t fed_ = 0;       // frames in the cutter
  CutRow row_, ahead_;          // without frames: the stream has ended
  std::vector<CutRow> marks_;
};

// Counts all rows from here on.
RowCounts count_rows(EventRows& rows);

}  // namespace millrace::training
