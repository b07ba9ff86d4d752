// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "chunker/row_arithmetic.h"
#include "chunker/spec.h"
#include "training/contract/catalog.h"
#include "training/contract/plan_options.h"
#include "training/plans/rows/cut_row.h"
#include "training/plans/rows/event_rows.h"
#include "training/plans/rows/returnn_rows.h"
#include "training/plans/rows/sized_rows.h"

namespace millrace::training {

// How the streams of one epoch are cut: by the rule of the options, or as whole streams, or as
// RETURNN does. Under the rule `random`, epoch e draws with seed + e.
//
// Immutable after construction, and thread-safe. The catalog must outlive it.
class StreamCutter {
 public:
  enum class Way : std::uint8_t {
    whole,   // one row per stream
    chunks,  // RETURNN's chunks
    plain,   // rows in constant time
    sized,   // rows of several sizes
    events,  // cut by a chunker from the stream's beginning
  };

  StreamCutter(const Catalog& catalog, const PlanOptions& options, std::uint64_t epoch);
  // The ways refer to the rule.
  StreamCutter(const StreamCutter&) = delete;
  StreamCutter& operator=(const StreamCutter&) = delete;

  Way way(const StreamRef& stream) const {
    return stream.events && cuts_events_ ? Way::events : way_;
  }
  // Counts the rows: O(1) for whole, chunks and plain.
  RowCounts counts(const StreamRef& stream) const;

  // Row `j` of the rows with frames of a stream. Requires: the way is whole, chunks or plain, and
  // framed = counts(stream).framed.
  Row row_at(const StreamRef& stream, std::uint64_t framed, std::uint64_t j) const;
  // The same without the length of the stream. Requires: is_inside(framed, j), and the way is
  // plain.
  Row row_inside(std::uint64_t j) const;
  // True if the stream does not end in the window of row `j` of `framed` rows.
  bool is_inside(std::uint64_t framed, std::uint64_t j) const { return j + reach_ < framed; }
  Way way() const { return way_; }  // the way of streams without inner events

  // The rows of a stream. Requires: the way is the one of the name.
  SizedRows sized_rows(const StreamRef& stream) const;
  EventRows event_rows(const StreamRef& stream) const;

 private:
  const Catalog& catalog_;
  ChunkRule rule_;
  Way way_;
  bool cuts_events_;
  std::uint64_t reach_ = 0;  // if this many rows follow a row, its window is whole
  Returnn returnn_ = Returnn::classic;
};

}  // namespace millrace::training
