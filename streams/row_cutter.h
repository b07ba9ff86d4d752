// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/event.h"
#include "base/time.h"
#include "chunker/ready_row.h"
#include "cutting/cutter.h"
#include "streams/frames/frame_buffer.h"
#include "streams/outstanding_rows.h"
#include "streams/stream_settings.h"
#include "streams/stream_tap.h"

namespace millrace {

// The second half of a stream: events in, rows out. Cuts rows, and keeps their frames until they
// are done. Each event that is cut, and the decisions among them, pass here once: `tap` sees them;
// it may be null. Confined to one thread. Does not allocate per row in steady state.
class RowCutter {
 public:
  // The first two arguments outlive it. `open` is the first event.
  RowCutter(const StreamSettings& settings, const StreamLinks& links, const Event& open);

  // The buffer of frames. Frames are appended before their event is added.
  FrameBuffer& frames() { return frames_; }
  const FrameBuffer& frames() const { return frames_; }

  // The next row; nullopt: add the next event. `waited` is how long rows wait; it is nullopt if no
  // event is there.
  std::optional<ReadyRow> next(std::optional<Duration> waited, Time now, StreamTap* tap);
  // The most frames that the next event may have. The event then yields at most one row, so that
  // rows stay bounded, and each has the instant of its own last frame.
  std::uint64_t frames_until_next(const StreamTap* tap) const;
  // Requires: next() has returned nullopt for the event before, and the stream has not ended.
  // `text` is that of an event that has one.
  void add(const Event& event, Time arrived, StreamTap* tap, Bytes text = {});

  // A worker's answer ends the segment of the row with this number.
  void on_worker_endpoint(std::uint64_t seq) { cutter_.on_worker_endpoint(seq); }
  // See Cutter::speech_began() and lost_detector().
  bool speech_began() { return cutter_.speech_began(); }
  // True if an endpoint ended the segment of the LAST row that was cut last.
  bool ended_by_endpoint() const { return ended_by_endpoint_; }
  bool lost_detector() { return cutter_.lost_detector(); }
  std::uint32_t body_size() const { return cutter_.body_size(); }

  void batched(std::uint64_t seq) { rows_.batched(seq); }
  // The oldest row is done. Requires: it has this number.
  Row done(std::uint64_t seq) { return rows_.done(seq); }
  // Drops the rows, and all frames. The last call.
  void drop_all();
  // Frees the frames that no outstanding row and no later row shows.
  void release_frames() { frames_.release(rows_.first_needed(cutter_.keep_from())); }

  const OutstandingRows& rows() const { return rows_; }
  // The number of frames that rows in no batch, or later rows, show.
  std::uint64_t frames_to_come() const {
    return frames_.end() - rows_.first_ready(cutter_.keep_from());
  }
  std::uint64_t position() const { return cutter_.position(); }
  // See Chunker::resume_position() and is_closing().
  std::uint64_t resume_position() const { return cutter_.resume_position(); }
  bool is_closing() const { return cutter_.is_closing(); }
  std::uint64_t chunks() const { return chunks_; }  // rows with frames

 private:
  FrameBuffer frames_;
  Cutter cutter_;
  OutstandingRows rows_;
  std::uint64_t added_ = 0;  // index after the last frame of the events so far
  Time arrived_;             // when the event added last was read
  std::uint64_t chunks_ = 0;
  bool endpoint_ = false;  // an endpoint was decided, and its LAST row is not cut yet
  bool ended_by_endpoint_ = false;
};

}  // namespace millrace
