// SPDX-License-Identifier: Apache-2.0
#include "streams/row_cutter.h"

#include <utility>

namespace millrace {

RowCutter::RowCutter(const StreamSettings& settings, const StreamLinks& links)
    : settings_(settings),
      stats_(links.stats),
      frames_(links.blocks, settings.type.bytes()),
      chunker_(settings.chunk.chunker_spec()),
      full_size_(settings.chunk.spec.size) {
  chunker_.add({.kind = Event::Kind::open});
}

void RowCutter::add(const Event& event, Time arrived) {
  arrived_ = arrived;
  if (event.kind == Event::Kind::frames) added_ += event.count;
  if (event.kind == Event::Kind::gap) gap_ = event.count;
  if (event.kind == Event::Kind::size) full_size_ = event.count;
  chunker_.add(event);
}

std::optional<ReadyRow> RowCutter::next(Time now) {
  const auto row = chunker_.next();
  if (!row) {
    // Rows that a gap cuts are before the gap; later rows are after it.
    skipped_ += std::exchange(gap_, 0);
    keep_ = chunker_.keep_from() - skipped_;
    return std::nullopt;
  }
  const std::uint64_t window = row->window_begin() - skipped_;
  rows_.add(*row, window, now);
  count(*row);
  ReadyRow ready{.row = *row, .window = {}, .arrived = arrived_, .ready = now};
  if (row->has_frames()) ready.window = frames_.window(window, row->window());
  return ready;
}

void RowCutter::count(const Row& row) {
  const std::uint32_t first = settings_.chunk.chunker_spec().first;
  const bool full = row.size == full_size_ || (row.is(flag::reset) && row.size == first);
  stats_.rows[!row.has_frames() ? RowKind::marker : full ? RowKind::full : RowKind::cut].add();
  if (row.is(flag::reset)) stats_.resets[row.reason].add();
  if (row.has_frames()) ++chunks_;
}

void RowCutter::drop_all() {
  rows_.clear();
  frames_.release(frames_.end());
}

}  // namespace millrace
