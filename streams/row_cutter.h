// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/event.h"
#include "base/time.h"
#include "chunker/chunker.h"
#include "chunker/ready_row.h"
#include "streams/frame_buffer.h"
#include "streams/outstanding_rows.h"
#include "streams/stream_settings.h"

namespace millrace {

// The second half of a stream: events in, rows out. Cuts rows, and keeps the frames that they show
// until they are done. Confined to one thread. No allocation per row in steady state.
class RowCutter {
 public:
  // All arguments outlive it.
  RowCutter(const StreamSettings& settings, const StreamLinks& links);

  // Frames are appended here before their event is added.
  FrameBuffer& frames() { return frames_; }
  const FrameBuffer& frames() const { return frames_; }

  // The most frames that the next event may have, so that it yields one row at most: rows stay
  // bounded, and each has the instant of its own last frame.
  std::uint64_t frames_until_next() const { return chunker_.frames_until_next(); }
  // Requires: next() gave nothing since the event before, and the stream has not ended.
  void add(const Event& event, Time arrived);
  // The next row of the event added last; nullopt if it yields no more.
  std::optional<ReadyRow> next(Time now);

  void taken(std::uint64_t seq) { rows_.take(seq); }
  // The oldest row. Requires: it has this number.
  Row done(std::uint64_t seq) { return rows_.done(seq); }
  // Drops the rows, and all frames. The last call.
  void drop_all();
  // Frees the frames that no outstanding row and no row to come shows.
  void release_frames() { frames_.release(rows_.first_needed(keep_)); }

  const OutstandingRows& rows() const { return rows_; }
  // Frames that rows which are in no batch, or are yet to come, show.
  std::uint64_t frames_to_come() const { return frames_.end() - rows_.first_ready(keep_); }
  std::uint64_t chunks() const { return chunks_; }  // rows with frames

 private:
  void count(const Row& row);

  const StreamSettings& settings_;
  StreamStats& stats_;
  FrameBuffer frames_;
  Chunker chunker_;
  OutstandingRows rows_;
  Time arrived_;               // of the event that was added last
  std::uint64_t gap_ = 0;      // frames that this event lost
  std::uint64_t skipped_ = 0;  // frames lost by the events before: position minus buffer index
  std::uint64_t keep_ = 0;     // index of the first frame that rows to come may show
  std::uint64_t chunks_ = 0;
};

}  // namespace millrace
