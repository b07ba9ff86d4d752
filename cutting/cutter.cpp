// SPDX-License-Identifier: Apache-2.0
#include "cutting/cutter.h"

#include <algorithm>
#include <utility>

namespace millrace {

using Kind = Event::Kind;

Cutter::Cutter(const ChunkRule& rule, Decisions decisions) : Cutter(rule) {
  stats_ = decisions.stats;
  if (!rule.sizes.sizes.empty()) sizes_.emplace(rule, decisions);
  if (decisions.endpoint)
    endpoints_.emplace(*decisions.endpoint, std::move(decisions.detector), stats_);
}

void Cutter::add(const Event& event, const std::array<Bytes, 2>& frames) {
  // A segment without frames has not begun: there is nothing to end, and no row follows.
  const bool begins = event.kind == Kind::gap && chunker_.segment_frames() == 0;
  last_ = event.kind;
  if (event.kind == Kind::gap) gap_ = event.count;
  if (event.kind == Kind::open) {
    skipped_ = event.count;
    if (sizes_) sizes_->on_open(event.count);
  }
  chunker_.add(event);
  if (begins) begin(event.kind);
  if (endpoints_ && event.kind == Kind::frames)
    endpoints_->on_frames(frames, chunker_.segment_frames());
}

std::optional<Row> Cutter::cut() {
  const auto row = chunker_.next();
  if (!row) {
    // Rows that a gap cuts are before the gap; later rows are after it.
    skipped_ += std::exchange(gap_, 0);
    keep_from_ = chunker_.keep_from() - skipped_;
    return std::nullopt;
  }
  if (stats_) count(*row);
  if (sizes_ && row->has_frames()) sizes_->on_row(*row);
  if (row->is(flag::last)) {
    if (endpoints_) endpoints_->on_last_row(row->seq);
    if (!chunker_.ended()) begin(last_);
  }
  return row;
}

// The event that must enter before all others. The size of a body is due before the stream's next
// event, and later than an endpoint.
std::optional<Event> Cutter::decide(std::optional<Duration> waited) {
  if (endpoints_)
    if (auto event = endpoints_->next()) return event;
  if (!sizes_ || !waited || chunker_.ended()) return std::nullopt;
  return sizes_->next(chunker_.first_of_run(), *waited);
}

// A segment begins, after an event of this kind.
void Cutter::begin(Kind after) {
  if (sizes_) sizes_->on_segment();
  if (endpoints_) endpoints_->on_begin(after != Kind::flush);
}

void Cutter::count(const Row& row) {
  // With sizes, a `size` event gives the first body of a run.
  const std::uint32_t first = rule_.sizes.sizes.empty() ? rule_.spec.first : 0;
  const bool full = row.size == chunker_.size() || (row.is(flag::reset) && row.size == first);
  stats_->rows[!row.has_frames() ? RowKind::marker : full ? RowKind::full : RowKind::cut].add();
  if (row.is(flag::reset)) stats_->resets[row.reason].add();
}

std::uint64_t Cutter::frames_until_next() const {
  const std::uint64_t row = chunker_.frames_until_next();
  return endpoints_ ? std::min(row, endpoints_->frames_until_next(chunker_.segment_frames())) : row;
}

void Cutter::on_worker_endpoint(std::uint64_t seq) {
  if (endpoints_)
    endpoints_->on_worker_endpoint(seq);
  else if (stats_)
    stats_->endpoints_late.add();
}

}  // namespace millrace
