// SPDX-License-Identifier: Apache-2.0
#include "streams/row_cutter.h"

#include <algorithm>
#include <utility>

namespace millrace {

RowCutter::RowCutter(const StreamSettings& settings, const StreamLinks& links, const Event& open)
    : frames_(links.blocks, settings.type.bytes()),
      cutter_(settings.chunk, {.stream = settings.name,
                               .rate = settings.type.rate,
                               .requested_size = settings.requested_size,
                               .max_wait = settings.max_wait,
                               .endpoint = settings.endpoint ? &*settings.endpoint : nullptr,
                               .detector = VoiceDetector::of(settings.endpoint, settings.type),
                               .stats = &links.stats,
                               .chosen_size = &links.chosen_size}) {
  cutter_.add(open);
}

std::uint64_t RowCutter::frames_until_next(const StreamTap* tap) const {
  const std::uint64_t frames = cutter_.frames_until_next();
  // Values are given in at most two blocks.
  const bool values = tap || cutter_.needs_values();
  return values ? std::min<std::uint64_t>(frames, frames_.block_frames()) : frames;
}

void RowCutter::add(const Event& event, Time arrived, StreamTap* tap, Bytes text) {
  arrived_ = arrived;
  std::array<Bytes, 2> frames;
  if (event.kind == Event::Kind::frames) {
    if (tap || cutter_.needs_values()) frames = frames_.window(added_, event.count);
    added_ += event.count;
  }
  if (tap) tap->event(event, arrived, event.has_text() ? std::array{text, Bytes()} : frames);
  cutter_.add(event, frames);
}

std::optional<ReadyRow> RowCutter::next(std::optional<Duration> waited, Time now, StreamTap* tap) {
  const auto row = cutter_.next(waited, [&](const Event& decision) {
    arrived_ = now;
    endpoint_ |= decision.cause == Cause::endpoint;
    if (tap) tap->event(decision, now, {});
  });
  if (!row) return std::nullopt;
  if (row->is(flag::last)) ended_by_endpoint_ = std::exchange(endpoint_, false);
  const std::uint64_t window = cutter_.index(row->window_begin());
  rows_.add(*row, window, now);
  ReadyRow ready{.row = *row, .window = {}, .arrived = arrived_, .ready = now};
  if (row->has_frames()) {
    ready.window = frames_.window(window, row->window());
    ++chunks_;
  }
  return ready;
}

void RowCutter::drop_all() {
  rows_.clear();
  frames_.release(frames_.end());
}

}  // namespace millrace
