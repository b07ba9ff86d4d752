// SPDX-License-Identifier: Apache-2.0
// The rows of a stream, from when they are cut until their results are written.
#include <new>
#include <utility>

#include "streams/stream.h"

namespace millrace {

void Stream::give(const Row& row, Time now) {
  const std::uint64_t window = row.window_begin() - skipped_;
  rows_.add(row, window);
  count(row);
  ReadyRow ready{.row = row, .window = {}, .arrived = arrived_, .ready = now};
  if (row.has_frames()) ready.window = buffer_.window(window, row.window());
  links_.rows.add(settings_.id, std::move(ready));
}

void Stream::count(const Row& row) {
  StreamStats& stats = links_.stats;
  const Spec& spec = settings_.spec;
  const bool full = row.size == spec.size || (row.is(flag::reset) && row.size == spec.first);
  stats.rows[!row.has_frames() ? RowKind::marker : full ? RowKind::full : RowKind::cut].add();
  if (row.is(flag::reset)) stats.resets[row.reason].add();
  if (row.has_frames()) ++chunks_;
}

void Stream::taken(std::size_t rows, Time now) {
  rows_.take(rows);
  settle(now);
}

void Stream::done(DoneRow done, Time now) {
  if (finished_) return;
  Row row = rows_.done(done.seq);
  row.flags |= done.flags;
  if (done.reason == ResetReason::worker_lost) links_.stats.resets[done.reason].add();
  const bool has_result = done.answer.kind != Answer::Kind::none;
  links_.stats.done(done.at);
  if (has_result) links_.stats.answered.add();
  if (has_result && !client_listens_) links_.stats.dropped[loss_].add();
  try {
    if (has_result && client_listens_) {
      unwritten_.add(done.at);
      StreamResult result{row, std::move(done.answer)};
      if (settings_.explain) result.explanation = {done.place, done.at};
      links_.client.result(std::move(result));
    }
    if (client_listens_ && row.mark) links_.client.flushed(*row.mark);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::internal, "no memory for a result", now);
  }
  all_done_ = row.is(flag::end);
  settle(now);
}

void Stream::written(std::size_t results, Time now) {
  unwritten_.written(results, now);
  if (held_up_ || all_done_) settle(now);
}

void Stream::finish(Time now) {
  input_ = Input::over;
  finished_ = true;
  paused_ = false;
  if (client_listens_) links_.client.closed(buffer_.end(), chunks_);
  client_listens_ = false;
  buffer_.release(buffer_.end());
  backlog_.release(backlog_.end());
  links_.stats.open.add(-1);
  links_.stats.closed[closing_].add();
  links_.stats.duration.observe(now - settings_.opened);
}

}  // namespace millrace
