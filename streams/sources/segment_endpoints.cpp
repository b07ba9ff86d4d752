// SPDX-License-Identifier: Apache-2.0
#include "streams/sources/segment_endpoints.h"

#include <utility>

namespace millrace {

SegmentEndpoints::SegmentEndpoints(const EndpointRule& rule, const FrameType& /*frames*/,
                                   StreamStats& stats)
    : rule_(rule), stats_(stats) {}

std::optional<Event> SegmentEndpoints::next() {
  std::optional<EndpointReason> reason = std::exchange(due_, std::nullopt);
  if (const auto row = std::exchange(worker_row_, std::nullopt)) {
    if (has_ended(*row))
      stats_.endpoints_late.add();
    else
      reason = EndpointReason::worker;
  }
  if (!reason) return std::nullopt;
  stats_.endpoints[*reason].add();
  const bool resets = rule_.on_endpoint == EndpointRule::On::reset;
  return Event{.kind = resets ? Event::Kind::reset : Event::Kind::flush, .cause = Cause::endpoint};
}

std::uint64_t SegmentEndpoints::frames_until_next(const SegmentProgress& progress) const {
  return rule_.max - progress.frames();
}

void SegmentEndpoints::on_frames(const std::array<Bytes, 2>& /*values*/,
                                 const SegmentProgress& progress) {
  if (progress.frames() == rule_.max) due_ = EndpointReason::length;
}

void SegmentEndpoints::on_begin(SegmentProgress::Began) { due_.reset(); }

void SegmentEndpoints::on_worker_endpoint(std::uint64_t seq) {
  if (rule_.by != EndpointRule::By::worker || has_ended(seq) || worker_row_)
    stats_.endpoints_late.add();
  else
    worker_row_ = seq;
}

}  // namespace millrace
