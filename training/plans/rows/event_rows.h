// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
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
// A stream that was opened anew in between is cut anew there, without left context. The rows that
// the part behind has again are left out: those that begin behind the position of its open, or
// there with a body. Frames in no ready row are dropped. With the recorded rule, these are the rows
// that the services gave.
//
// Marker rows before the first row with frames are left out, and that row gets START, unless the
// stream begins with an open anew. Confined to one thread. Does not allocate after construction,
// except for marker rows.
class EventRows {
 public:
  // Begins at the first row with frames. `rule` must outlive it.
  EventRows(const ChunkRule& rule, std::string name, std::vector<InnerEvent> events,
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
  void begin_part();
  void look_ahead();
  bool next(CutRow& row);
  bool counts(const Row& row) const;
  void feed();

  const ChunkRule& rule_;
  const std::string name_;
  std::vector<InnerEvent> events_;
  std::uint64_t frames_;
  std::optional<Cutter> cutter_;
  std::size_t next_event_ = 0;  // in events_
  std::uint64_t fed_ = 0;       // frames in all cutters so far
  std::uint64_t before_ = 0;    // those in the cutters of earlier parts
  std::uint64_t rows_ = 0;      // rows so far
  std::uint64_t until_ = 0;     // where the next part begins
  CutRow row_, ahead_;          // without frames: the stream has ended
  std::vector<CutRow> marks_;
};

// Counts all rows from here on.
RowCounts count_rows(EventRows& rows);

}  // namespace millrace::training
