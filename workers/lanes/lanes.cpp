// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/lanes.h"

#include <algorithm>
#include <iterator>

#include "base/message_room.h"

namespace millrace {

void LaneEvents::clear() {
  returned.clear();
  finished.clear();
  posts.clear();
  overdue.clear();
  why_overdue.clear();
  left.clear();
  lost.clear();
}

Lanes::Lanes(LanesRule rule) : rule_(std::move(rule)), lanes_(rule_.timeouts) {}

void Lanes::open(StreamId id, Time now) {
  Stream& stream = streams_.try_emplace(id).first->second;
  stream.id = id;
  start_waiting(stream, now);
  settle();
}

void Lanes::add(StreamId id, ReadyRow row) {
  ++rows_received_;
  Stream* stream = find(id);
  if (!stream) return;
  if (row.row.is(flag::abort) && !stream->any_worker_saw_row) {
    drop(*stream);
    return settle();
  }
  if (row.row.is(flag::end)) {
    stream->ending = true;
    update_movable(*stream);
  }
  ++rows_;
  pass_on(*stream, std::move(row));
}

void Lanes::abandon(StreamId id) {
  Stream* stream = find(id);
  if (!stream) return;
  stream->abandoned = true;
  drop_if_abandoned(*stream);
}

LaneId Lanes::attach(std::uint32_t credits, Time now) {
  IndexedLane& lane = lanes_.add(rule_.batch, credits, now);
  if (draining_) lane.batcher().drain();
  settle();
  return lane.id();
}

void Lanes::on_message(LaneId id, Time now) {
  if (IndexedLane* lane = lanes_.find(id)) lane->on_message(now);
}

void Lanes::extend_deadlines(Duration late, Time now) {
  for (auto& [id, lane] : lanes_.all()) lane.extend_deadlines(late, now);
  for (WaitKey waiting : std::exchange(waiting_, {})) {
    Time& since = std::get<0>(waiting);
    since = std::min(since + late, now);
    find(std::get<StreamId>(waiting))->wait_key = waiting;
    waiting_.insert(waiting);
  }
  for (PendingRow row : std::exchange(pending_, {})) {
    row.since = std::min(row.since + late, now);
    due_row(*find(row.stream), row.seq)->pending_since = row.since;
    pending_.insert(row);
  }
}

MovedStreams Lanes::bye(LaneId id, Time now) {
  IndexedLane* lane = lanes_.find(id);
  if (!lane || lane->leaving()) return leaving_streams(id);
  const std::size_t all = lane->batcher().streams();
  lane->leave(now + rule_.bye_wait);
  lanes_.update(*lane);
  update_movable_of(*lane);
  settle();
  const std::size_t waiting = leaving_streams(id).waiting;  // 0 if the lane is gone
  return {.moved = all - waiting, .waiting = waiting};
}

void Lanes::lost(LaneId id, LossCause cause, Time now) {
  IndexedLane* lane = lanes_.find(id);
  if (!lane) return;
  remove_lost(*lane, cause, now);
  settle();
}

void Lanes::slab_freed(LaneId id) {
  IndexedLane* lane = lanes_.find(id);
  if (lane && lane->is_without_slab()) lanes_.mark_changed(*lane);
}

std::optional<Time> Lanes::slab_needed_since(LaneId id) const {
  const IndexedLane* lane = lanes_.find(id);
  return lane ? lane->slab_needed_since() : std::nullopt;
}

Batch* Lanes::next(LaneId id, bool has_slab, Time now) {
  IndexedLane* lane = lanes_.find(id);
  if (!lane) return nullptr;
  const bool had_slab = !lane->is_without_slab();
  Batch* batch = lane->close(BatchId{next_batch_}, has_slab, now);
  if (!batch && has_slab != had_slab) lanes_.update(*lane);
  if (!batch) return nullptr;
  ++next_batch_;
  opened_.clear();
  for (auto* rows : {&batch->framed, &batch->marks})
    for (BatchRow& row : *rows) {
      Stream& stream = *find(row.stream);
      ++stream.handed;
      stream.any_worker_saw_row = true;
      stream.newest = row.ready.row.seq;
      if (!std::exchange(stream.worker_saw_row, true)) {
        opened_.push_back({&row, stream_room - stream.room_used});
        update_movable(stream);
      }
      if (!std::exchange(row.ready.handed, true) && row.ready.notify_batched)
        events_.returned.push_back({row.stream, RowBatched{row.ready.row.seq, batch->closed}});
    }
  lanes_.update(*lane);
  return batch;
}

void Lanes::drain(Time wait_limit) {
  draining_ = true;
  wait_limit_ = wait_limit;
  for (auto& [id, lane] : lanes_.all()) {
    lane.batcher().drain();
    lanes_.mark_changed(lane);
  }
}

// While a lane still has rows of a stream in batches, or answers are pending, the stream's wait has
// no limit: it is served.
Time Lanes::wait_limit_of(const WaitKey& waiting) const {
  const Stream& stream = streams_.at(std::get<StreamId>(waiting));
  if (stream.handed > 0 || !stream.due.empty()) return Time::max();
  return std::min(std::get<0>(waiting) + rule_.worker_wait, wait_limit_);
}

Time Lanes::deadline() {
  Time due = Time::max();
  for (const WaitKey& waiting : waiting_) {
    due = wait_limit_of(waiting);
    if (due != Time::max()) break;
  }
  if (!pending_.empty()) due = std::min(due, pending_.begin()->since + rule_.timeouts.answer);
  return std::min(due, lanes_.due());
}

void Lanes::expire(Time now) {
  expire_pending(now);
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const auto at = waiting++;
    const Time due = wait_limit_of(*at);
    if (due == Time::max()) continue;
    if (due > now) break;
    const StreamId id = std::get<StreamId>(*at);
    events_.returned.push_back({id, StreamDropped{ErrorCode::no_worker}});
    remove(*find(id));
  }
  for (LaneId id : lanes_.due_until(now)) {
    IndexedLane& lane = *lanes_.find(id);
    if (lane.lost_at(rule_.timeouts) <= now) {
      events_.overdue.push_back(id);
      events_.why_overdue.push_back(lane.why_lost(rule_.timeouts, now));
      remove_lost(lane, LossCause::worker, now);
    } else {
      if (lane.release(now)) update_movable_of(lane);
      lanes_.mark_changed(lane);
    }
  }
  settle();
}

std::uint64_t Lanes::capacity() const {
  const LaneTotals& totals = lanes_.totals();
  return std::uint64_t{rule_.batch.slots} * std::max<std::size_t>(1, totals.lanes - totals.leaving);
}

bool Lanes::leaving(LaneId id) const {
  const IndexedLane* lane = lanes_.find(id);
  return lane && lane->leaving();
}

Lanes::Stream* Lanes::find(StreamId id) {
  const auto stream = streams_.find(id);
  return stream == streams_.end() ? nullptr : &stream->second;
}

void Lanes::settle() {
  assign_waiting();
  move_streams();
  end_empty_lanes();
}

void Lanes::pass_on(Stream& stream, ReadyRow row) {
  if (!stream.lane || stream.from || stream.stopped) {
    stream.held.push_back(std::move(row));
    return;
  }
  if (stream.reset_due) {
    row.row.flags |= flag::reset;
    row.row.reason = ResetReason::worker_lost;
    if (row.row.has_frames()) stream.reset_due = false;
  }
  stream.lane->batcher().add(stream.slot, row);
  lanes_.mark_changed(*stream.lane);
}

void Lanes::pass_on_held(Stream& stream) {
  for (ReadyRow& row : std::exchange(stream.held, {})) pass_on(stream, std::move(row));
}

void Lanes::drop_if_abandoned(Stream& stream) {
  if (stream.abandoned && !stream.lane && !stream.any_worker_saw_row) drop(stream);
}

void Lanes::drop(Stream& stream) {
  events_.returned.push_back({stream.id, StreamDropped{}});
  remove(stream);
}

void Lanes::remove(Stream& stream) {
  movable_.erase(stream.id);
  rows_ -= stream.held.size();
  for (const Due& due : stream.due)
    if (due.pending_since) forget_pending(stream, due);
  if (stream.from) lanes_.mark_changed(*stream.from);
  if (stream.lane) {
    rows_ -= stream.lane->batcher().remove(stream.slot).size();
    lanes_.mark_changed(*stream.lane);
  } else {
    waiting_.erase(stream.wait_key);
  }
  events_.finished.push_back(stream.id);
  streams_.erase(stream.id);
}

}  // namespace millrace
