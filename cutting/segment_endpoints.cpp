// SPDX-License-Identifier: Apache-2.0
#include "cutting/segment_endpoints.h"

#include <algorithm>
#include <new>
#include <utility>

namespace millrace {

SegmentEndpoints::SegmentEndpoints(const EndpointRule& rule, const FrameType& frames,
                                   CutStats& stats)
    : rule_(rule), stats_(stats), silence_(rule) {
  if (rule.by == EndpointRule::By::vad) detector_.emplace(frames, rule.sensitivity);
}

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
  reason_ = *reason;
  const bool resets = rule_.on_endpoint == EndpointRule::On::reset;
  return Event{.kind = resets ? Event::Kind::reset : Event::Kind::flush, .cause = Cause::endpoint};
}

std::uint64_t SegmentEndpoints::frames_until_next(const SegmentProgress& progress) const {
  const std::uint64_t left = rule_.max - progress.frames();
  return detector_ ? std::min<std::uint64_t>(left, detector_->missing()) : left;
}

void SegmentEndpoints::on_frames(const std::array<Bytes, 2>& frames,
                                 const SegmentProgress& progress) {
  speech_.reset();
  if (detector_)
    for (const Bytes part : frames) listen(part, progress);
  if (!due_ && progress.frames() == rule_.max) due_ = EndpointReason::length;
}

void SegmentEndpoints::listen(Bytes frames, const SegmentProgress& progress) {
  if (frames.empty()) return;
  speech_ = detector_->add(frames);
  if (!speech_) return;
  due_ = silence_.add(*speech_, std::min<std::uint64_t>(detector_->piece(), progress.frames()));
}

void SegmentEndpoints::on_begin(SegmentProgress::Began what) {
  due_.reset();
  silence_.begin();
  if (!detector_ || what != SegmentProgress::Began::run) return;
  try {
    detector_->restart();
  } catch (const std::bad_alloc&) {
    detector_.reset();
    throw;
  }
}

void SegmentEndpoints::on_worker_endpoint(std::uint64_t seq) {
  if (rule_.by != EndpointRule::By::worker || has_ended(seq) || worker_row_)
    stats_.endpoints_late.add();
  else
    worker_row_ = seq;
}

}  // namespace millrace
