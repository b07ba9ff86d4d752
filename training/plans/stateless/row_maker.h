// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "training/contract/plan.h"
#include "training/plans/order/epoch_streams.h"
#include "training/plans/rows/cut_row.h"
#include "training/plans/rows/row_widths.h"
#include "training/plans/rows/stream_cutter.h"
#include "training/plans/rows/stream_steps.h"
#include "training/plans/stateless/items.h"

namespace millrace::training {

// Makes single rows of streams. Each is a run of its own, with RESET. Neighbouring rows of a stream
// are cheap. Confined to one thread.
class RowMaker {
 public:
  // All must outlive it.
  RowMaker(const EpochStreams& streams, const StreamCutter& cutter, const RowWidths& widths)
      : streams_(streams), cutter_(cutter), widths_(widths) {}

  // Writes the rows of some of `all`.
  void make(const std::vector<Item>& items, const Items& all, std::vector<PlannedRow>& into) {
    // Most rows need no length of their stream, so that they do not wait for this memory.
    const bool plain = cutter_.way() == Way::plain && !all.events && !all.bucket;
    into.resize(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      PlannedRow& planned = into[i];
      planned.stream = streams_.stream(item.stream);
      planned.slot = static_cast<std::uint32_t>(i);
      planned.copy = streams_.copy(item.stream);
      planned.opens = true;
      if (plain && cutter_.is_inside(item.rows, item.row)) {
        planned.row = cutter_.row_inside(item.row);
        planned.frame = planned.row.begin;
      } else {
        write(item, all.bucket, planned);
      }
      planned.row.flags |= flag::reset;
      if (planned.row.reason == ResetReason::none) planned.row.reason = ResetReason::start;
    }
  }

 private:
  using Way = StreamCutter::Way;

  void write(const Item& item, const std::optional<Bucket>& bucket, PlannedRow& into) {
    const StreamRef stream{into.stream, streams_.frames(item.stream),
                           streams_.has_events(item.stream), into.copy};
    const Way way = cutter_.way(stream);
    if (bucket || way == Way::sized || way == Way::events) {
      const CutRow cut = bucket ? searched(item, stream, *bucket) : stepped(item, stream);
      into.row = cut.row;
      into.frame = cut.frame;
    } else {
      into.row = cutter_.row_at(stream, item.rows, item.row);
      into.frame = into.row.begin;
    }
  }

  // Items of a bucket count only its rows. So the stream is cut from its beginning.
  CutRow searched(const Item& item, const StreamRef& stream, const Bucket& bucket) {
    std::uint64_t before = 0;
    for (steps_.open(cutter_, stream, 0);; steps_.advance(1)) {
      const CutRow cut = steps_.row();
      if (bucket.holds(widths_.columns(cut.row)) && before++ == item.row) return cut;
    }
  }

  CutRow stepped(const Item& item, const StreamRef& stream) {
    if (steps_.ended() || item.stream != place_ || item.row < step_)
      steps_.open(cutter_, stream, item.row);
    else if (item.row > step_)
      steps_.advance(item.row - step_);
    place_ = item.stream;
    step_ = item.row;
    return steps_.row();
  }

  const EpochStreams& streams_;
  const StreamCutter& cutter_;
  const RowWidths& widths_;
  // The last stream that was not cut in constant time, and its row.
  StreamSteps steps_;
  std::uint64_t place_ = 0, step_ = 0;
};

}  // namespace millrace::training
