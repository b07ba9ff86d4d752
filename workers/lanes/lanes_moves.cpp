// SPDX-License-Identifier: Apache-2.0
// How a stream gets a slot, and how it moves away from a worker that is leaving or lost.
#include <iterator>

#include "workers/lanes/lanes.h"

namespace millrace {

void Lanes::assign(Stream& stream, IndexedLane& lane) {
  stream.lane = &lane;
  stream.slot = lane.batcher().open(stream.id).value();
  stream.worker_saw_row = false;
  if (!stream.from) pass_on_held(stream);
  lanes_.mark_changed(lane);
}

void Lanes::start_waiting(Stream& stream, Time now) {
  stream.lane = nullptr;
  stream.worker_saw_row = false;
  stream.wait_key = {now, stream.held.empty() ? now : stream.held.front().ready, stream.id};
  waiting_.insert(stream.wait_key);
}

void Lanes::assign_waiting() {
  while (!waiting_.empty()) {
    IndexedLane* lane = lanes_.lane_for_stream();
    if (!lane) return;
    Stream& stream = *find(std::get<StreamId>(*waiting_.begin()));
    waiting_.erase(waiting_.begin());
    assign(stream, *lane);
  }
}

// The row fails. Its stream has no other row in a batch, because the worker had only the trial.
void Lanes::fail_trial(IndexedLane& lane, Batch& trial, Time now) {
  const BatchRow& row = trial.framed.empty() ? trial.marks.front() : trial.framed.front();
  const StreamId id = row.stream;
  Instants at;
  at.copied = at.taken = at.done = now;
  finish_row(lane, trial, row,
             Answer{Answer::Kind::error, "two workers were lost while they held this row"}, at);
  count_failed(id);
}

void Lanes::count_failed(StreamId id) {
  Stream* stream = find(id);
  if (!stream || !std::exchange(stream->failed, true)) return;
  events_.returned.push_back({id, StreamDropped{ErrorCode::worker_failed}});
  remove(*stream);
}

// The rows that were handed over and are not done go before the rows that their streams hold. Only
// the oldest batch can be the reason why the worker was lost.
void Lanes::reclaim_batches(IndexedLane& lane, LossCause cause, Time now) {
  std::unordered_map<StreamId, std::deque<ReadyRow>> reclaimed;
  for (bool suspect = cause == LossCause::worker; !lane.held().empty(); suspect = false) {
    Batch batch = lane.finish(now);
    if (suspect && batch.is_trial()) {
      fail_trial(lane, batch, now);
      continue;
    }
    for (auto* rows : {&batch.framed, &batch.marks})
      for (BatchRow& row : *rows) {
        row.ready.suspect |= suspect;
        row.ready.lost += now - batch.closed;
        --find(row.stream)->handed;
        reclaimed[row.stream].push_back(std::move(row.ready));
      }
  }
  for (auto& [id, rows] : reclaimed) {
    Stream& stream = *find(id);
    stream.held.insert(stream.held.begin(), std::move_iterator(rows.begin()),
                       std::move_iterator(rows.end()));
    if (stream.from == &lane) complete_move(stream, now);
  }
}

void Lanes::remove_lost(IndexedLane& lane, LossCause cause, Time now) {
  fail_pending_of(lane, cause, now);
  reclaim_batches(lane, cause, now);
  auto& streams = events_.lost.emplace_back(lane.id(), std::vector<StreamId>()).second;
  for (StreamId id : lane.batcher().holders()) {
    streams.push_back(id);
    Stream& stream = *find(id);
    hold_waiting_rows(stream);
    start_waiting(stream, now);
    update_movable(stream);
    drop_if_abandoned(stream);
  }
  lanes_.erase(lane);
}

MovedStreams Lanes::moved_from(LaneId lost) const {
  MovedStreams streams;
  for (const auto& [lane, ids] : events_.lost) {
    if (lane != lost) continue;
    for (const StreamId id : ids)
      if (const auto stream = streams_.find(id); stream != streams_.end())
        ++(stream->second.lane ? streams.moved : streams.waiting);
  }
  return streams;
}

MovedStreams Lanes::leaving_streams(LaneId id) const {
  const IndexedLane* lane = lanes_.find(id);
  if (!lane) return {};
  return {.moved = lane->moved(), .waiting = lane->batcher().streams()};
}

// Frees the stream's slot. Its rows that are in no batch are now held by the stream.
void Lanes::hold_waiting_rows(Stream& stream) {
  for (ReadyRow& row : stream.lane->batcher().remove(stream.slot))
    stream.held.push_back(std::move(row));
  stream.reset_due |= stream.worker_saw_row;
}

// True if the stream can move from its leaving worker before its segment ends: the worker had no
// row of it, or has kept it for `bye_wait`.
bool Lanes::may_move(const Stream& stream) const {
  return stream.lane && stream.lane->leaving() &&
         (!stream.worker_saw_row || stream.lane->released()) && !stream.from && !stream.ending &&
         stream.due.empty();
}

void Lanes::update_movable(const Stream& stream) {
  if (may_move(stream))
    movable_.insert(stream.id);
  else if (!movable_.empty())
    movable_.erase(stream.id);
}

void Lanes::update_movable_of(const IndexedLane& lane) {
  for (StreamId id : lane.batcher().holders()) {
    update_movable(*find(id));
    stop_if_due(*find(id));
  }
}

void Lanes::move_streams() {
  while (!movable_.empty()) {
    IndexedLane* to = lanes_.lane_for_stream();
    if (!to) return;
    move_away(*find(*movable_.begin()), *to);
  }
}

// The rows in batches are done by the old worker. The rows after them are held until then, and go
// to the new lane.
void Lanes::move_away(Stream& stream, IndexedLane& to) {
  IndexedLane& from = *stream.lane;
  hold_waiting_rows(stream);
  if (stream.handed > 0) stream.from = &from;
  assign(stream, to);
  from.count_move();
  update_movable(stream);
  lanes_.mark_changed(from);
}

// The old lane has no more rows of a stream that moved. The stream continues in the new lane; if
// that one was lost meanwhile, the stream waits for a slot from now on.
void Lanes::complete_move(Stream& stream, Time now) {
  stream.from = nullptr;
  update_movable(stream);
  if (stream.lane) return pass_on_held(stream);
  waiting_.erase(stream.wait_key);
  start_waiting(stream, now);
}

void Lanes::end_empty_lanes() {
  lanes_.take_emptied(emptied_);
  for (LaneId id : emptied_)
    if (IndexedLane* lane = lanes_.find(id); lane && lane->is_empty()) {  // still
      events_.left.push_back(id);
      lanes_.erase(*lane);
    }
}

}  // namespace millrace
