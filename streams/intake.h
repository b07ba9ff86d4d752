// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/event.h"
#include "base/time.h"
#include "chunker/chunker.h"
#include "input/frame_converter.h"
#include "streams/clamp_watch.h"
#include "streams/client_output.h"
#include "streams/frame_buffer.h"
#include "streams/stream_settings.h"
#include "streams/waiting_events.h"

namespace millrace {

// The first half of a stream: a client's messages in, the chunker's events out, in order. Converts
// frames, keeps the events that wait for the chunker, and sheds frames that have waited too long.
//
// Frames are converted into the buffer from which rows are cut. With `shed_after`, frames that
// arrive while others wait go to a second buffer until take(): rows refer to frames by address, so
// frames that may be shed must be elsewhere.
//
// Confined to one thread. No allocation per message in steady state.
class Intake {
 public:
  // Waiting frames are grouped by the instant of reading, in groups of `shed_after` / shed_grains.
  static constexpr int shed_grains = 16;

  // The only place that converts counts of client frames to pipeline frames and back. At present
  // both are equal: a frame has all channels or is one vector in any format, and the rates are
  // equal. With unequal rates this becomes the difference of the stream's totals, so that rounding
  // errors do not add up, and client_frames() is rounded down.
  static std::uint64_t pipeline_frames(std::uint64_t client_frames) { return client_frames; }
  static std::uint64_t client_frames(std::uint64_t pipeline_frames) { return pipeline_frames; }

  // `frames` is the buffer from which rows are cut. All arguments outlive it.
  Intake(const StreamSettings& settings, const StreamLinks& links, ClientOutput& client,
         FrameBuffer& frames);

  // Adds input of the client. Returns false if positions would exceed max_position: nothing was
  // added, and the stream cannot continue. A message with NaN or infinity is rejected and becomes a
  // gap.
  [[nodiscard]] bool add_frames(Bytes message, Time now);
  [[nodiscard]] bool add_gap(std::uint64_t frames, Cause cause, Time now);
  void add(const Event& event, Time now) { waiting_.push(event, now); }
  // Rejects a frame of which only part has arrived: the event that follows ends it.
  void reject_partial_frame();
  bool in_range(std::uint64_t frames) const { return frames <= max_position - position_; }

  // Replaces frames that were read more than `shed_after` ago by a gap. At most a sixteenth of that
  // time late, never early.
  void shed(Time now);
  // Drops all waiting events and their frames.
  void clear();

  // The next event for the chunker, with at most `frames` frames; these are then in the buffer from
  // which rows are cut. Requires: not empty().
  WaitingEvents::Waiting take(std::uint64_t frames);

  bool empty() const { return waiting_.empty(); }
  std::size_t waiting() const { return waiting_.size(); }       // events
  std::uint64_t kept_apart() const { return backlog_.held(); }  // frames
  // The position after the last frame received or lost, waiting frames included, in frames of the
  // pipeline.
  std::uint64_t position() const { return position_; }

 private:
  FrameConverter::Findings convert(Bytes message, std::size_t count, FrameBuffer& to);
  void fetch(std::uint64_t frames);

  const StreamSettings& settings_;
  const StreamLinks& links_;
  ClientOutput& client_;
  FrameBuffer& frames_;  // its last unfed_ frames wait
  FrameBuffer backlog_;  // the frames that wait after these
  std::uint64_t unfed_ = 0;
  FrameConverter converter_;
  ClampWatch clamps_;
  WaitingEvents waiting_;
  std::uint64_t position_ = 0;
};

}  // namespace millrace
