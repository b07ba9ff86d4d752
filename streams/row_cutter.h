// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/event.h"
#include "base/time.h"
#include "chunker/chunker.h"
#include "chunker/ready_row.h"
#include "streams/frames/frame_buffer.h"
#include "streams/outstanding_rows.h"
#include "streams/stream_settings.h"

namespace millrace {

// The second half of a stream: events in, rows out. Cuts rows, and keeps their frames until they
// are done. Confined to one thread. Does not allocate per row in steady state.
class RowCutter {
 public:
  // All arguments outlive it.
  RowCutter(const StreamSettings& settings, const StreamLinks& links);

  // The buffer of frames. Frames are appended before their event is added.
  FrameBuffer& frames() { return frames_; }
  const FrameBuffer& frames() const { return frames_; }

  // The most frames that the next event may have, so that it yields at most one row. Then the rows
  // stay bounded, and each has the instant of its own last frame.
  std::uint64_t frames_until_next() const { return chunker_.frames_until_next(); }
  // Requires: next() has returned nullopt for the event before, and the stream has not ended.
  void add(const Event& event, Time arrived);
  // When the event added last was read.
  Time arrived() const { return arrived_; }
  // The next row of the event added last; nullopt if it yields no more.
  std::optional<ReadyRow> next(Time now);

  void batched(std::uint64_t seq) { rows_.batched(seq); }
  // The oldest row is done. Requires: it has this number.
  Row done(std::uint64_t seq) { return rows_.done(seq); }
  // Drops the rows, and all frames. The last call.
  void drop_all();
  // Frees the frames that no outstanding row and no later row shows.
  void release_frames() { frames_.release(rows_.first_needed(keep_)); }

  // The values of the last `frames` frames of the events so far. Requires: they are in at most two
  // blocks.
  std::array<Bytes, 2> newest(std::uint64_t frames) const {
    return frames_.window(added_ - frames, frames);
  }

  const OutstandingRows& rows() const { return rows_; }
  // The number of frames that rows in no batch, or later rows, show.
  std::uint64_t frames_to_come() const { return frames_.end() - rows_.first_ready(keep_); }
  std::uint64_t chunks() const { return chunks_; }  // rows with frames

 private:
  void count(const Row& row);

  const StreamSettings& settings_;
  StreamStats& stats_;
  FrameBuffer frames_;
  Chunker chunker_;
  std::uint64_t full_size_;  // size of the next body that is not the first of its run
  OutstandingRows rows_;
  std::uint64_t added_ = 0;    // index after the last frame of the events so far
  Time arrived_;               // when the event added last was read
  std::uint64_t gap_ = 0;      // frames that this event loses
  std::uint64_t skipped_ = 0;  // frames lost by earlier events: position minus buffer index
  std::uint64_t keep_ = 0;     // index of the first frame that later rows may show
  std::uint64_t chunks_ = 0;
};

}  // namespace millrace
