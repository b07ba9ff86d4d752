// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/event.h"
#include "cutting/segment_silence.h"
#include "cutting/stats.h"
#include "input/endpoint_rule.h"
#include "input/voice_detector.h"

namespace millrace {

// The source of one stream's endpoints: ends segments after silence, at their greatest length, or
// where a worker's answer ends them. The voice detector gets pieces of 10 ms, counted from the
// start of the run: it begins anew with each run and continues across segments. A piece belongs to
// the segment in which it ends, with its frames since the start of that segment.
//
// Has no clock. Confined to one thread. Does not allocate after construction, except that the voice
// detector of a pipeline above 16 kHz allocates when a run begins.
class SegmentEndpoints {
 public:
  // `rule` and `stats` outlive it; `stats` may be null. The detector is null unless endpoints are
  // by voice.
  SegmentEndpoints(const EndpointRule& rule, std::unique_ptr<VoiceDetector> detector,
                   CutStats* stats)
      : rule_(rule), stats_(stats), detector_(std::move(detector)), silence_(rule) {}

  // The event that ends the segment now, before any other event enters the chunker; nullopt: none.
  std::optional<Event> next();
  // At most this many frames may enter the chunker before next() is called again. At least 1 if
  // next() has returned nullopt. `segment` is the number of frames of the segment.
  std::uint64_t frames_until_next(std::uint64_t segment) const;

  // True if on_frames() needs the values of frames.
  bool needs_values() const { return detector_ != nullptr; }
  // Frames have entered the chunker; `frames` are their values, if they are needed. The segment now
  // has `segment` frames. Requires: at most frames_until_next().
  void on_frames(const std::array<Bytes, 2>& frames, std::uint64_t segment);
  // A segment begins, and perhaps a run.
  void on_begin(bool run);
  // A LAST row was cut.
  void on_last_row(std::uint64_t seq) { last_row_ = seq; }
  // A worker's answer ends the segment of the row with this number. Without effect, and counted, if
  // that segment has ended, or if workers do not end the segments of this pipeline.
  void on_worker_endpoint(std::uint64_t seq);

  // Whether the piece that ended with the frames added last contains speech; nullopt if no piece
  // ended.
  std::optional<bool> speech() const { return speech_; }
  // True, once, if this was the first speech of its segment.
  bool speech_began() { return std::exchange(speech_began_, false); }
  // The reason of the endpoint that next() returned last.
  EndpointReason reason() const { return reason_; }
  // True, once, if there was no memory to restart the detector.
  bool lost_detector() { return std::exchange(lost_detector_, false); }

 private:
  void listen(Bytes frames, std::uint64_t segment);
  void count_late();
  bool has_ended(std::uint64_t seq) const { return last_row_ && seq <= *last_row_; }

  const EndpointRule& rule_;
  CutStats* stats_;
  std::unique_ptr<VoiceDetector> detector_;
  bool lost_detector_ = false;
  SegmentSilence silence_;
  std::optional<bool> speech_;
  bool speech_began_ = false;
  EndpointReason reason_{};
  std::optional<EndpointReason> due_;
  std::optional<std::uint64_t> worker_row_;  // a worker ended the segment of this row
  std::optional<std::uint64_t> last_row_;    // number of the LAST row cut last
};

}  // namespace millrace
