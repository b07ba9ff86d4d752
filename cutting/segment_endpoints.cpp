// SPDX-License-Identifier: Apache-2.0
#include "cutting/segment_endpoints.h"

#include <algorithm>
#include <new>
#include <utility>

namespace millrace {

std::optional<Event> SegmentEndpoints::next() {
  std::optional<EndpointReason> reason = std::exchange(due_, std::nullopt);
  if (const auto row = std::exchange(worker_row_, std::nullopt)) {
    if (has_ended(*row))
      count_late();
    else
      reason = EndpointReason::worker;
  }
  if (!reason) return std::nullopt;
  if (stats_) stats_->endpoints[*reason].add();
  reason_ = *reason;
  const bool resets = rule_.on_endpoint == EndpointRule::On::reset;
  return Event{.kind = resets ? Event::Kind::reset : Event::Kind::flush, .cause = Cause::endpoint};
}

std::uint64_t SegmentEndpoints::frames_until_next(std::uint64_t segment) const {
  const std::uint64_t left = rule_.max - segment;
  return detector_ ? std::min<std::uint64_t>(left, detector_->missing()) : left;
}

void SegmentEndpoints::on_frames(const std::array<Bytes, 2>& frames, std::uint64_t segment) {
  speech_.reset();
  speech_began_ = false;
  if (detector_)
    for (const Bytes part : frames) listen(part, segment);
  if (!due_ && segment == rule_.max) due_ = EndpointReason::length;
}

void SegmentEndpoints::listen(Bytes frames, std::uint64_t segment) {
  if (frames.empty()) return;
  speech_ = detector_->add(frames);
  if (!speech_) return;
  speech_began_ = *speech_ && !silence_.has_speech();
  due_ = silence_.add(*speech_, std::min<std::uint64_t>(detector_->piece(), segment));
}

void SegmentEndpoints::on_begin(bool run) {
  due_.reset();
  silence_.begin();
  if (!detector_ || !run) return;
  try {
    detector_->restart();
  } catch (const std::bad_alloc&) {
    detector_.reset();
    lost_detector_ = true;
  }
}

void SegmentEndpoints::on_worker_endpoint(std::uint64_t seq) {
  if (rule_.by != EndpointRule::By::worker || has_ended(seq) || worker_row_)
    count_late();
  else
    worker_row_ = seq;
}

void SegmentEndpoints::count_late() {
  if (stats_) stats_->endpoints_late.add();
}

}  // namespace millrace
