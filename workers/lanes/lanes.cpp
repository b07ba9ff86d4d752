// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/lanes.h"

#include <algorithm>
#include <iterator>

namespace millrace {

void LaneEvents::clear() {
  returned.clear();
  gone.clear();
  overdue.clear();
  why_overdue.clear();
  left.clear();
}

Lanes::Lanes(LanesRule rule) : rule_(std::move(rule)), lanes_(rule_.patience) {}

void Lanes::open(StreamId id, Time now) {
  Stream& stream = streams_.try_emplace(id).first->second;
  stream.id = id;
  wait(stream, now);
  settle();
}

void Lanes::add(StreamId id, ReadyRow row) {
  ++rows_received_;
  Stream* stream = find(id);
  if (!stream) return;
  if (row.row.is(flag::abort) && !stream->had) {
    events_.returned.push_back({id, StreamDropped{}});
    forget(*stream);
    return settle();
  }
  if (row.row.is(flag::end)) {
    stream->ending = true;
    review(*stream);
  }
  ++rows_;
  feed(*stream, std::move(row));
}

LaneId Lanes::attach(std::uint32_t credits, Time now) {
  FiledLane& lane = lanes_.add(rule_.batch, credits, now);
  if (draining_) lane.batcher().drain();
  settle();
  return lane.id();
}

void Lanes::heard(LaneId id, Time now) {
  if (FiledLane* lane = lanes_.find(id)) lane->heard(now);
}

void Lanes::shift(Duration late, Time now) {
  for (auto& [id, lane] : lanes_.all()) lane.shift(late, now);
  for (WaitKey waiting : std::exchange(waiting_, {})) {
    Time& since = std::get<0>(waiting);
    since = std::min(since + late, now);
    find(std::get<StreamId>(waiting))->waiting = waiting;
    waiting_.insert(waiting);
  }
}

void Lanes::bye(LaneId id, Time now) {
  FiledLane* lane = lanes_.find(id);
  if (!lane || lane->leaving()) return;
  lane->leave(now + rule_.bye_wait);
  lanes_.file(*lane);
  review_all(*lane);
  settle();
}

void Lanes::lost(LaneId id, Blame blame, Time now) {
  FiledLane* lane = lanes_.find(id);
  if (!lane) return;
  take_back(*lane, blame, now);
  settle();
}

void Lanes::slab_freed(LaneId id) {
  FiledLane* lane = lanes_.find(id);
  if (lane && lane->is_without_slab()) lanes_.mark(*lane);
}

std::optional<Time> Lanes::slab_wanted(LaneId id) const {
  const FiledLane* lane = lanes_.find(id);
  return lane ? lane->slab_wanted() : std::nullopt;
}

Batch* Lanes::next(LaneId id, bool has_slab, Time now) {
  FiledLane* lane = lanes_.find(id);
  if (!lane) return nullptr;
  const bool had_slab = !lane->is_without_slab();
  Batch* batch = lane->close(BatchId{next_batch_}, has_slab, now);
  if (!batch && has_slab != had_slab) lanes_.file(*lane);
  if (!batch) return nullptr;
  ++next_batch_;
  opened_.clear();
  for (auto* rows : {&batch->framed, &batch->marks})
    for (BatchRow& row : *rows) {
      Stream& stream = *find(row.stream);
      ++stream.handed;
      stream.had = true;
      if (!std::exchange(stream.begun, true)) {
        opened_.push_back(&row);
        review(stream);
      }
      if (!std::exchange(row.ready.handed, true) && row.ready.notify_taken)
        events_.returned.push_back({row.stream, RowTaken{row.ready.row.seq, batch->closed}});
    }
  lanes_.file(*lane);
  return batch;
}

Lanes::Given Lanes::done(LaneId id, BatchId batch_id, std::span<Answer> answers,
                         std::span<Answer> mark_answers, const Instants& at) {
  FiledLane* lane = lanes_.find(id);
  if (!lane) return Given::repeated;
  switch (lane->order_of(batch_id)) {
    case Lane::Order::again: return Given::repeated;
    case Lane::Order::wrong: return Given::wrong;
    case Lane::Order::next: break;
  }
  const Batch& oldest = lane->held().front();
  if (!answers.empty() && answers.size() != oldest.framed.size()) return Given::wrong;
  if (!mark_answers.empty() && mark_answers.size() != oldest.marks.size()) return Given::wrong;

  Batch batch = lane->finish(at.done);
  const auto finish = [&](const std::vector<BatchRow>& rows, std::span<Answer> given) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      finish_row(*lane, batch, rows[i], given.empty() ? Answer{} : std::move(given[i]), at);
  };
  finish(batch.framed, answers);
  finish(batch.marks, mark_answers);
  lane->reuse(std::move(batch));
  lanes_.mark(*lane);
  settle();
  return Given::taken;
}

void Lanes::drain(Time give_up) {
  draining_ = true;
  give_up_ = give_up;
  for (auto& [id, lane] : lanes_.all()) {
    lane.batcher().drain();
    lanes_.mark(lane);
  }
}

// A stream that a leaving worker still serves does not wait yet.
Time Lanes::gives_up(const WaitKey& waiting) const {
  if (streams_.at(std::get<StreamId>(waiting)).handed > 0) return Time::max();
  return std::min(std::get<0>(waiting) + rule_.worker_wait, give_up_);
}

Time Lanes::deadline() {
  Time due = Time::max();
  for (const WaitKey& waiting : waiting_) {
    due = gives_up(waiting);
    if (due != Time::max()) break;
  }
  return std::min(due, lanes_.due());
}

void Lanes::expire(Time now) {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const auto at = waiting++;
    const Time due = gives_up(*at);
    if (due == Time::max()) continue;
    if (due > now) break;
    const StreamId id = std::get<StreamId>(*at);
    events_.returned.push_back({id, StreamDropped{ErrorCode::no_worker}});
    forget(*find(id));
  }
  for (LaneId id : lanes_.due_until(now)) {
    FiledLane& lane = *lanes_.find(id);
    if (lane.lost_at(rule_.patience) <= now) {
      events_.overdue.push_back(id);
      events_.why_overdue.push_back(lane.why_lost(rule_.patience, now));
      take_back(lane, Blame::worker, now);
    } else {
      if (lane.release(now)) review_all(lane);
      lanes_.mark(lane);
    }
  }
  settle();
}

std::uint64_t Lanes::capacity() const {
  const LaneTotals& totals = lanes_.totals();
  return std::uint64_t{rule_.batch.slots} * std::max<std::size_t>(1, totals.lanes - totals.leaving);
}

bool Lanes::leaving(LaneId id) const {
  const FiledLane* lane = lanes_.find(id);
  return lane && lane->leaving();
}

Lanes::Stream* Lanes::find(StreamId id) {
  const auto stream = streams_.find(id);
  return stream == streams_.end() ? nullptr : &stream->second;
}

// What any change may have made possible.
void Lanes::settle() {
  place_waiting();
  move_free();
  end_empty();
}

void Lanes::feed(Stream& stream, ReadyRow row) {
  if (!stream.lane || stream.from) {
    stream.held.push_back(std::move(row));
    return;
  }
  if (stream.reset_due) {
    row.row.flags |= flag::reset;
    row.row.reason = ResetReason::worker_lost;
    if (row.row.has_frames()) stream.reset_due = false;
  }
  stream.lane->batcher().add(stream.slot, row);
  lanes_.mark(*stream.lane);
}

void Lanes::feed_held(Stream& stream) {
  for (ReadyRow& row : std::exchange(stream.held, {})) feed(stream, std::move(row));
}

void Lanes::finish_row(FiledLane& lane, const Batch& batch, const BatchRow& row, Answer answer,
                       Instants at) {
  Stream& stream = *find(row.stream);
  const Row& done = row.ready.row;
  at.arrived = row.ready.arrived;
  at.ready = row.ready.ready;
  // The time at workers that were lost was after its first batch had closed.
  at.closed = batch.closed - row.ready.lost;
  at.copied -= row.ready.lost;
  const RowPlace place{.batch = batch.id,
                       .slot = row.slot,
                       .rows = static_cast<std::uint32_t>(batch.framed.size()),
                       .trigger = batch.trigger};
  events_.returned.push_back(
      {row.stream, RowDone{done.flags, done.reason, done.seq, std::move(answer), at, place}});
  --stream.handed;
  --rows_;
  if (done.is(flag::end)) {
    forget(stream);
  } else if (stream.from == &lane) {
    if (stream.handed == 0) arrive(stream, at.done);
  } else if (done.is(flag::last) && stream.lane == &lane && lane.leaving() && !stream.ending) {
    if (FiledLane* to = lanes_.roomiest()) move_away(stream, *to);
  }
}

void Lanes::forget(Stream& stream) {
  free_.erase(stream.id);
  rows_ -= stream.held.size();
  if (stream.lane) {
    rows_ -= stream.lane->batcher().remove(stream.slot).size();
    lanes_.mark(*stream.lane);
  } else {
    waiting_.erase(stream.waiting);
  }
  events_.gone.push_back(stream.id);
  streams_.erase(stream.id);
}

}  // namespace millrace
