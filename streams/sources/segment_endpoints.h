// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/event.h"
#include "base/frame_type.h"
#include "input/endpoint_rule.h"
#include "streams/sources/segment_progress.h"
#include "streams/stats.h"

namespace millrace {

// The source of one stream's endpoints: ends segments after silence, at their greatest length, or
// where a worker's answer ends them. Has no clock. Confined to one thread. Does not allocate after
// construction.
class SegmentEndpoints {
 public:
  // `rule` and `stats` outlive it.
  SegmentEndpoints(const EndpointRule& rule, const FrameType& frames, StreamStats& stats);

  // The event that ends the segment now, before any other event enters the chunker; nullopt: none.
  std::optional<Event> next();
  // At most this many frames may enter the chunker before next() is called again. At least 1 if
  // next() has returned nullopt.
  std::uint64_t frames_until_next(const SegmentProgress& progress) const;

  // Frames have entered the chunker; `frames` are their values.
  void on_frames(const std::array<Bytes, 2>& frames, const SegmentProgress& progress);
  void on_begin(SegmentProgress::Began what);
  // A LAST row was cut.
  void on_last_row(std::uint64_t seq) { last_row_ = seq; }
  // A worker's answer ends the segment of the row with this number. Without effect, and counted, if
  // that segment has ended, or if workers do not end the segments of this pipeline.
  void on_worker_endpoint(std::uint64_t seq);

 private:
  bool has_ended(std::uint64_t seq) const { return last_row_ && seq <= *last_row_; }

  const EndpointRule& rule_;
  StreamStats& stats_;
  std::optional<EndpointReason> due_;
  std::optional<std::uint64_t> worker_row_;  // a worker ended the segment of this row
  std::optional<std::uint64_t> last_row_;    // number of the LAST row cut last
};

}  // namespace millrace
