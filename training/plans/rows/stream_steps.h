// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "training/contract/plan.h"
#include "training/plans/rows/cut_row.h"
#include "training/plans/rows/stream_cutter.h"

namespace millrace::training {

// The steps of one stream after each other. A step is a row with frames, and the marker rows after
// it. Confined to one thread. Does not allocate for streams without inner events.
class StreamSteps {
 public:
  // Without a stream: ended() is true.
  StreamSteps() = default;

  // Goes to step `step` of a stream. Returns the number of steps that the stream lacks for this; 0
  // unless ended(). `cutter` must outlive this.
  std::uint64_t open(const StreamCutter& cutter, const StreamRef& stream, std::uint64_t step);
  // Goes `steps` >= 1 steps forward. Returns the same as open(). Requires: !ended().
  std::uint64_t advance(std::uint64_t steps);

  bool ended() const { return ended_; }
  const StreamRef& stream() const { return stream_; }

  // The row with frames of this step. Requires: !ended().
  CutRow row() const;
  // Appends the marker rows of this step, in this slot.
  void add_marks(std::uint32_t slot, std::vector<PlannedRow>& into) const;

 private:
  std::uint64_t end(std::uint64_t lacking);
  std::uint64_t skip_sized(std::uint64_t steps);
  std::uint64_t skip_events(std::uint64_t steps);
  Row end_marker() const;

  bool ended_ = true;
  const StreamCutter* cutter_ = nullptr;
  StreamCutter::Way way_ = StreamCutter::Way::plain;
  StreamRef stream_;

  RowCounts counts_;        // not for sized rows and events
  std::uint64_t step_ = 0;  // not for events

  std::optional<SizedRows> next_;  // the row after this step
  CutRow sized_;                   // the row of this step

  std::unique_ptr<EventRows> events_;
};

}  // namespace millrace::training
