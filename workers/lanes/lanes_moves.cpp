// SPDX-License-Identifier: Apache-2.0
// How a stream gets a slot, leaves a worker that leaves, and leaves one that is lost.
#include <iterator>

#include "workers/lanes/lanes.h"

namespace millrace {

void Lanes::place(Stream& stream, FiledLane& lane) {
  stream.lane = &lane;
  stream.slot = lane.batcher().open(stream.id).value();
  stream.begun = false;
  if (!stream.from) feed_held(stream);
  lanes_.mark(lane);
}

void Lanes::wait(Stream& stream, Time now) {
  stream.lane = nullptr;
  stream.begun = false;
  stream.waiting = {now, stream.held.empty() ? now : stream.held.front().ready, stream.id};
  waiting_.insert(stream.waiting);
}

void Lanes::place_waiting() {
  while (!waiting_.empty()) {
    FiledLane* lane = lanes_.roomiest();
    if (!lane) return;
    Stream& stream = *find(std::get<StreamId>(*waiting_.begin()));
    waiting_.erase(waiting_.begin());
    place(stream, *lane);
  }
}

// The row is not tried again. Its stream has no other row in a batch: the trial was all that the
// worker had.
void Lanes::convict(FiledLane& lane, Batch& trial, Time now) {
  const BatchRow& row = trial.framed.empty() ? trial.marks.front() : trial.framed.front();
  const StreamId id = row.stream;
  Instants at;
  at.copied = at.taken = at.done = now;
  finish_row(lane, trial, row, Answer{Answer::Kind::error, "two workers were lost over this row"},
             at);
  Stream* stream = find(id);
  if (!stream || !std::exchange(stream->failed, true)) return;
  events_.returned.push_back({id, StreamDropped{ErrorCode::worker_failed}});
  forget(*stream);
}

// Rows handed over and not done go back in front of the rows that their streams hold. The worker
// can only have died of its oldest batch.
void Lanes::take_back_batches(FiledLane& lane, Blame blame, Time now) {
  std::unordered_map<StreamId, std::deque<ReadyRow>> again;
  for (bool blamed = blame == Blame::worker; !lane.held().empty(); blamed = false) {
    Batch batch = lane.finish(now);
    if (blamed && batch.is_trial()) {
      convict(lane, batch, now);
      continue;
    }
    for (auto* rows : {&batch.framed, &batch.marks})
      for (BatchRow& row : *rows) {
        row.ready.suspect |= blamed;
        row.ready.lost += now - batch.closed;
        --find(row.stream)->handed;
        again[row.stream].push_back(std::move(row.ready));
      }
  }
  for (auto& [id, rows] : again) {
    Stream& stream = *find(id);
    stream.held.insert(stream.held.begin(), std::move_iterator(rows.begin()),
                       std::move_iterator(rows.end()));
    if (stream.from == &lane) arrive(stream, now);
  }
}

void Lanes::take_back(FiledLane& lane, Blame blame, Time now) {
  take_back_batches(lane, blame, now);
  for (StreamId id : lane.batcher().holders()) {
    Stream& stream = *find(id);
    hold_waiting_rows(stream);
    wait(stream, now);
    review(stream);
  }
  lanes_.erase(lane);
}

// The stream leaves its slot with the rows that are in no batch.
void Lanes::hold_waiting_rows(Stream& stream) {
  for (ReadyRow& row : stream.lane->batcher().remove(stream.slot))
    stream.held.push_back(std::move(row));
  stream.reset_due |= stream.begun;
}

// Whether the stream leaves a leaving worker as soon as there is room elsewhere: the worker has had
// no row of it, or has kept it for `bye_wait`.
bool Lanes::may_move(const Stream& stream) const {
  return stream.lane && stream.lane->leaving() && (!stream.begun || stream.lane->released()) &&
         !stream.from && !stream.ending;
}

void Lanes::review(const Stream& stream) {
  if (may_move(stream))
    free_.insert(stream.id);
  else if (!free_.empty())
    free_.erase(stream.id);
}

void Lanes::review_all(const FiledLane& lane) {
  for (StreamId id : lane.batcher().holders()) review(*find(id));
}

void Lanes::move_free() {
  while (!free_.empty()) {
    FiledLane* to = lanes_.roomiest();
    if (!to) return;
    move_away(*find(*free_.begin()), *to);
  }
}

// Its rows in batches stay to be done there; what follows waits for them and then goes to the
// new lane.
void Lanes::move_away(Stream& stream, FiledLane& to) {
  FiledLane& from = *stream.lane;
  hold_waiting_rows(stream);
  if (stream.handed > 0) stream.from = &from;
  place(stream, to);
  review(stream);
  lanes_.mark(from);
}

// No row of a stream that moved is in its old lane any more: it goes on in the new one or, where
// that is gone, waits for another from now on.
void Lanes::arrive(Stream& stream, Time now) {
  stream.from = nullptr;
  review(stream);
  if (stream.lane) return feed_held(stream);
  waiting_.erase(stream.waiting);
  wait(stream, now);
}

// A leaving lane without streams is ended.
void Lanes::end_empty() {
  lanes_.take_emptied(emptied_);
  for (LaneId id : emptied_)
    if (FiledLane* lane = lanes_.find(id)) {
      events_.left.push_back(id);
      lanes_.erase(*lane);
    }
}

}  // namespace millrace
