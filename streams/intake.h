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
// Frames are converted to where rows are cut from. With `shed_after`, frames that come while others
// wait are kept apart until take(): rows refer to frames where they lie, so frames that may be shed
// must lie elsewhere.
//
// Confined to one thread. No allocation per message in steady state.
class Intake {
 public:
  // Frames are grouped by when they were read, in groups of this part of `shed_after`.
  static constexpr int shed_grains = 16;

  // The only place that knows how many frames of the pipeline a client's frames become, and the
  // other way round. Now both count alike: a frame is all channels, or one vector, in any format,
  // and the rates are equal. With unequal rates this becomes the difference of the stream's totals,
  // so that rounding does not add up, and client_frames() is rounded down.
  static std::uint64_t pipeline_frames(std::uint64_t client_frames) { return client_frames; }
  static std::uint64_t client_frames(std::uint64_t pipeline_frames) { return pipeline_frames; }

  // `frames`: where rows are cut from. All arguments outlive it.
  Intake(const StreamSettings& settings, const StreamLinks& links, ClientOutput& client,
         FrameBuffer& frames);

  // Input of the client. False if positions would pass max_position: nothing was added, and the
  // stream cannot continue. Values that are NaN or infinite are rejected and become a gap.
  [[nodiscard]] bool add_frames(Bytes message, Time now);
  [[nodiscard]] bool add_gap(std::uint64_t frames, Cause cause, Time now);
  void add(const Event& event, Time now) { waiting_.push(event, now); }
  // A frame of which only a part came does not continue behind what follows: it is rejected.
  void reject_partial_frame();
  bool has_room_for(std::uint64_t frames) const { return frames <= max_position - position_; }

  // Replaces frames that were read more than `shed_after` ago by a gap. Late by a sixteenth of it
  // at most, never early.
  void shed(Time now);
  // Drops everything that waits.
  void clear();

  // The next event for the chunker, with at most `frames` frames, which are the next in the buffer
  // then. Requires: not empty().
  WaitingEvents::Waiting take(std::uint64_t frames);

  bool empty() const { return waiting_.empty(); }
  std::size_t waiting() const { return waiting_.size(); }       // events
  std::uint64_t kept_apart() const { return backlog_.held(); }  // frames
  // Behind the last frame received or lost, those that wait included, in frames of the pipeline.
  std::uint64_t position() const { return position_; }

 private:
  FrameConverter::Findings convert(Bytes message, std::size_t count, FrameBuffer& to);
  void fetch(std::uint64_t frames);

  const StreamSettings& settings_;
  const StreamLinks& links_;
  ClientOutput& client_;
  FrameBuffer& frames_;  // the last unfed_ of them wait here
  FrameBuffer backlog_;  // those that wait behind them
  std::uint64_t unfed_ = 0;
  FrameConverter converter_;
  ClampWatch clamps_;
  WaitingEvents waiting_;
  std::uint64_t position_ = 0;
};

}  // namespace millrace
