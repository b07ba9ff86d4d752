// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/error_code.h"
#include "base/event.h"
#include "base/ring.h"
#include "base/time.h"
#include "input/input_converter.h"
#include "streams/clamp_watch.h"
#include "streams/client_output.h"
#include "streams/container_watch.h"
#include "streams/frames/frame_buffer.h"
#include "streams/frames/frame_counts.h"
#include "streams/frames/packet_counts.h"
#include "streams/input_pace.h"
#include "streams/stream_settings.h"
#include "streams/waiting_events.h"

namespace millrace {

// The first half of a stream: a client's messages in, the chunker's events out, in order. Converts
// frames, keeps the events that wait for the chunker, and sheds frames that have waited too long.
//
// Positions. The client's audio is a sequence of input frames (InputConverter): its own frames, or
// the decoded frames of Opus packets. Conversion is *drained* at a reset of the client, a gap, a
// rejected message and the end: all frames that the converter still held become frames of the
// pipeline, and conversion begins anew. After n input frames, lost ones included, the position is
// then ⌊n · p / c⌋ (c: the rate of the input, p: the pipeline's). Elsewhere it lags by the delay of
// conversion. A flush, shedding and an abort drain nothing. Lost input frames that do not change
// the position become a `reset` event with the cause of the gap, because a gap has at least one
// frame, and a row must never continue a state that was lost.
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

  // `frames` is the buffer from which rows are cut. These arguments outlive it. `resume`: null if
  // the stream cannot be resumed.
  Intake(const StreamSettings& settings, const StreamLinks& links, ClientOutput& client,
         FrameBuffer& frames, const ResumeSettings* resume);

  // True if a stream of this format can begin at the place.
  static bool can_begin(const ClientFormat& format, const FrameType& type, const ResumePoint& at);

  // Input of the client. Each of the first three returns false if positions would exceed
  // max_position, in frames of the pipeline or of the input: the stream cannot continue.

  // A message in the client's format. With NaN or infinity, or if it is a packet that cannot be
  // decoded, it is rejected as a whole, and its frames become a gap.
  [[nodiscard]] bool add_frames(Bytes message, Time now);
  // See InputConverter::piece().
  std::size_t piece(Bytes message) { return converter_.piece(message); }
  // The client lost some of its frames.
  [[nodiscard]] bool add_gap(std::uint64_t client_frames, Time now);
  // A message with this many frames of the client was refused: they become a gap.
  [[nodiscard]] bool reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                            Time now);
  void flush(std::optional<std::uint64_t> mark, Time now);
  void reset(Time now);
  // An event with a text of `bytes` bytes. Drains nothing.
  void add_text(Event::Kind kind, std::size_t bytes, Time now) {
    push({.kind = kind, .count = bytes}, now);
  }
  // The end of the client's input, with this cause. No call above may follow.
  void end(Cause cause, Time now);
  void abort(Time now);
  // Rejects a frame of which only part has arrived: the event that follows ends it.
  void reject_partial_frame();

  // Time has passed, for the pace of the input.
  void pass(Time now) { pace_.pass(now); }
  // True while the client should not send because its input is too far ahead of real time.
  bool too_fast() const { return pace_.exceeded(); }

  // Replaces frames that were read more than `shed_after` ago by a gap. At most a sixteenth of that
  // time late, never early.
  void shed(Time now);
  // Drops all waiting events and their frames.
  void clear();

  // The next event for the chunker, with at most `frames` frames; these are then in the buffer from
  // which rows are cut. Requires: not empty().
  WaitingEvents::Waiting take(std::uint64_t frames);

  // The number of frames of the client that surely give at most `frames` frames of the pipeline,
  // those still in conversion included. An Opus packet counts as the longest possible. A later gap
  // may add one frame, because it moves the point at which the count is rounded. At most what the
  // pace of the input allows.
  std::uint64_t client_frames_within(std::uint64_t frames) const;

  bool empty() const { return waiting_.empty(); }
  std::size_t waiting() const { return waiting_.size(); }       // events
  std::uint64_t kept_apart() const { return backlog_.held(); }  // frames
  // The number of the client's frames that have arrived, lost ones included. A frame of which only
  // part has arrived does not count. Requires for packets: the stream may be resumed.
  std::uint64_t client_frames() const { return packets_ ? packets_->packets() : input_; }
  // Completes the place: the frame of the client that has its position.
  void locate(ResumePoint& place) const {
    if (!counts_.is_identity() || packets_) return locate_converted(place);
    place.frames = place.begin;  // a frame of the client is one of the pipeline
    place.skip = 0;
  }
  // Nothing before this position will be located again.
  void forget(std::uint64_t position);
  // Drops a frame of which only part has arrived.
  void drop_partial_frame() { converter_.drop_partial(); }

  // The position after the last frame converted or lost, waiting frames included, in frames of the
  // pipeline.
  std::uint64_t position() const { return position_; }

 private:
  class Sink;
  struct Restart {
    std::uint64_t position = 0;
    std::uint64_t input = 0;
  };

  static std::uint64_t first_of_packet(const ResumePoint& at, const FrameCounts& counts,
                                       double rate);
  void begin_at(const ResumeSettings& resume);
  void locate_converted(ResumePoint& place) const;
  void begin_conversion();
  std::uint64_t first_input_at(std::uint64_t position) const;
  void push(const Event& event, Time now) { waiting_.push(event, now); }
  Duration duration_of(std::uint64_t input_frames) const;
  bool in_range(std::uint64_t input_frames) const;
  bool goes_apart() const { return settings_.shed_after && !waiting_.empty(); }
  void warn(std::string_view message);
  void reject_values(InputConverter::Fault fault, Bytes message, std::uint64_t input_frames,
                     Time now);
  void add_converted(const Appended& converted, std::uint64_t skipped, bool apart, Time now);
  void drain(Time now);
  void lose(std::uint64_t client_frames, std::uint64_t input_frames, Cause cause, Time now);
  void reject_input(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                    std::uint64_t input_frames, Time now);
  std::optional<std::uint64_t> lost_input_frames(std::uint64_t client_frames) const;
  void fetch(std::uint64_t frames);

  const StreamSettings& settings_;
  const StreamLinks& links_;
  ClientOutput& client_;
  FrameBuffer& frames_;  // its last unfed_ frames wait
  FrameBuffer backlog_;  // the frames that wait after these
  std::uint64_t unfed_ = 0;
  InputConverter converter_;
  const FrameCounts counts_;
  const bool resumes_;  // the stream can be resumed
  std::uint64_t skip_;  // frames still to drop before the place where the stream continues
  // Where conversion began anew, if earlier input frames have the same position; empty if the
  // stream cannot be resumed.
  Ring<Restart> restarts_;
  std::unique_ptr<PacketCounts> packets_;  // null unless the stream has Opus and can be resumed
  static const RateRule& pace_of(const StreamSettings& settings, const StreamLinks& links);
  // Input frames of the longest frame of the client.
  std::uint64_t longest_frame() const {
    return settings_.format.format == SampleFormat::opus ? converter_.most_input_frames(0) : 1;
  }
  InputPace pace_;
  ClampWatch clamps_;
  ContainerWatch containers_;
  WaitingEvents waiting_;
  std::uint64_t input_ = 0;     // input frames so far, lost ones included
  std::uint64_t drained_ = 0;   // the same when conversion began anew
  std::uint64_t position_ = 0;  // at most that of input_
};

}  // namespace millrace
