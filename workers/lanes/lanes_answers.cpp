// SPDX-License-Identifier: Apache-2.0
// The output of workers: batches that are done, answers that follow later, and messages.
#include <algorithm>
#include <utility>

#include "base/message_room.h"
#include "workers/lanes/lanes.h"

namespace millrace {

Lanes::DoneResult Lanes::done(LaneId id, BatchId batch_id, std::span<Answer> answers,
                              std::span<Answer> mark_answers, const Instants& at) {
  IndexedLane* lane = lanes_.find(id);
  if (!lane) return DoneResult::repeated;
  switch (lane->order_of(batch_id)) {
    case Lane::Order::repeated: return DoneResult::repeated;
    case Lane::Order::wrong: return DoneResult::wrong;
    case Lane::Order::next: break;
  }
  const Batch& oldest = lane->held().front();
  if (!answers.empty() && answers.size() != oldest.framed.size()) return DoneResult::wrong;
  if (!mark_answers.empty() && mark_answers.size() != oldest.marks.size()) return DoneResult::wrong;

  Batch batch = lane->finish(at.done);
  const auto finish = [&](const std::vector<BatchRow>& rows, std::span<Answer> given) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      finish_row(*lane, batch, rows[i], given.empty() ? Answer{} : std::move(given[i]), at);
  };
  finish(batch.framed, answers);
  finish(batch.marks, mark_answers);
  lane->reuse(std::move(batch));
  lanes_.mark_changed(*lane);
  settle();
  return DoneResult::accepted;
}

void Lanes::finish_row(IndexedLane& lane, const Batch& batch, const BatchRow& row, Answer answer,
                       Instants at) {
  Stream& stream = *find(row.stream);
  const Row& done = row.ready.row;
  at.arrived = row.ready.arrived;
  at.ready = row.ready.ready;
  // The time in batches of lost workers moves both instants back: it counts as handover, not as
  // a wait for a batch.
  at.closed = batch.closed - row.ready.lost;
  at.copied -= row.ready.lost;
  const RowInBatch in_batch{.batch = batch.id,
                            .slot = row.slot,
                            .rows = static_cast<std::uint32_t>(batch.framed.size()),
                            .trigger = batch.trigger};
  if (row.ready.posts) events_.posts.emplace_back(row.stream, row.ready.posts);
  --stream.handed;
  --rows_;
  RowDone result{done.flags, done.reason, done.seq, std::move(answer), at, in_batch};
  if (result.answer.kind == Answer::Kind::pending || !stream.due.empty())
    add_due(stream, lane, std::move(result));
  else
    deliver(stream, lane, std::move(result), at.done);
}

void Lanes::deliver(Stream& stream, IndexedLane& lane, RowDone done, Time now) {
  const std::uint8_t flags = done.flags;
  events_.returned.push_back({stream.id, std::move(done)});
  if ((flags & flag::end) != 0) return remove(stream);
  if (!stream.due.empty()) return;
  if (stream.from == &lane) {
    if (stream.handed == 0) complete_move(stream, now);
  } else if ((flags & flag::last) != 0 && stream.lane == &lane && lane.leaving() &&
             !stream.ending) {
    if (IndexedLane* to = lanes_.lane_for_stream()) move_away(stream, *to);
  }
}

// The row is done when its answer has come, or those of the rows before it.
void Lanes::add_due(Stream& stream, IndexedLane& lane, RowDone done) {
  Due due{std::move(done), std::nullopt};
  if (due.done.answer.kind == Answer::Kind::pending) {
    due.pending_since = due.done.at.done;
    pending_.insert({*due.pending_since, stream.id, due.done.seq});
    ++stream.pending;
    lane.add_pending(1);
  }
  limit(stream, due.done.answer);
  stream.due.push_back(std::move(due));
  update_movable(stream);
  stop_if_due(stream);
}

// The answers that wait are limited, whatever the worker sends.
void Lanes::limit(Stream& stream, Answer& answer) {
  if (stream.due_bytes + answer.data.size() > longest_due)
    answer = {Answer::Kind::error, "the answers behind a pending row are too long",
              answer.endpoint};
  stream.due_bytes += answer.data.size();
}

bool Lanes::must_stop(const Stream& stream) {
  const bool leaves = stream.lane && stream.lane->released() && !stream.due.empty();
  return leaves || stream.pending >= max_pending_rows || stream.due.size() >= max_due_rows ||
         stream.due_bytes >= max_due_bytes;
}

void Lanes::stop_if_due(Stream& stream) {
  if (!must_stop(stream) || std::exchange(stream.stopped, true)) return;
  if (!stream.lane || stream.from) return;  // it hands over no rows anyway
  for (ReadyRow& row : stream.lane->batcher().take(stream.slot))
    stream.held.push_back(std::move(row));
  lanes_.mark_changed(*stream.lane);
}

Lanes::Due* Lanes::due_row(Stream& stream, std::uint64_t seq) {
  const auto due = std::ranges::find(stream.due, seq, [](const Due& o) { return o.done.seq; });
  return due == stream.due.end() || !due->pending_since ? nullptr : &*due;
}

bool Lanes::answer(LaneId id, StreamId stream_id, std::uint64_t seq, Answer& answer, Time now) {
  Stream* const stream = find(stream_id);
  const IndexedLane* const lane = stream ? served_by(*stream) : nullptr;
  Due* const due = lane && lane->id() == id ? due_row(*stream, seq) : nullptr;
  if (!due) return false;
  resolve(*stream, *due, std::move(answer), now);
  release(*stream, now);
  settle();
  return true;
}

void Lanes::resolve(Stream& stream, Due& due, Answer answer, Time now) {
  forget_pending(stream, due);
  due.pending_since.reset();
  answer.endpoint |= due.done.answer.endpoint;
  limit(stream, answer);
  due.done.answer = std::move(answer);
  due.done.at.done = now;
  stop_if_due(stream);
}

void Lanes::forget_pending(Stream& stream, const Due& due) {
  pending_.erase({*due.pending_since, stream.id, due.done.seq});
  --stream.pending;
  served_by(stream)->add_pending(-1);
}

// Delivers the rows before the first one that is pending. The stream may be gone afterwards.
void Lanes::release(Stream& stream, Time now) {
  IndexedLane& lane = *served_by(stream);
  while (!stream.due.empty() && !stream.due.front().pending_since) {
    RowDone done = std::move(stream.due.front().done);
    stream.due.pop_front();
    stream.due_bytes -= done.answer.data.size();
    const bool end = (done.flags & flag::end) != 0;
    deliver(stream, lane, std::move(done), now);
    if (end) return lanes_.mark_changed(lane);
  }
  update_movable(stream);
  if (stream.stopped && !must_stop(stream)) {
    stream.stopped = false;
    if (stream.lane && !stream.from) pass_on_held(stream);
  }
  lanes_.mark_changed(lane);
}

void Lanes::fail_pending(PendingRow row, std::string why, Time now) {
  Stream& stream = *find(row.stream);
  resolve(stream, *due_row(stream, row.seq), {Answer::Kind::error, std::move(why)}, now);
  release(stream, now);
}

void Lanes::expire_pending(Time now) {
  while (!pending_.empty() && pending_.begin()->since + rule_.timeouts.answer <= now)
    fail_pending(*pending_.begin(), "its pending answer did not come within answer_wait", now);
}

// Their slabs are gone, so they cannot be handed over again.
void Lanes::fail_pending_of(const IndexedLane& lane, LossCause cause, Time now) {
  const bool trial = cause == LossCause::worker && lane.has_pending_trial();
  std::vector<PendingRow> rows;
  for (const PendingRow& row : pending_)
    if (served_by(*find(row.stream)) == &lane) rows.push_back(row);
  for (const PendingRow& row : rows) {
    fail_pending(row, "its worker was lost before its pending answer came", now);
    if (trial) count_failed(row.stream);
  }
}

Lanes::SendResult Lanes::send(LaneId id, StreamId stream_id, std::uint64_t seq, Answer& message) {
  Stream* const stream = find(stream_id);
  const IndexedLane* const lane = stream ? served_by(*stream) : nullptr;
  if (!lane || lane->id() != id) return SendResult::late;
  if (seq > stream->newest || room_of(message) > stream_room - stream->room_used)
    return SendResult::wrong;
  stream->room_used += room_of(message);
  events_.returned.push_back({stream_id, WorkerMessage{seq, std::move(message)}});
  return SendResult::accepted;
}

std::optional<LaneId> Lanes::free_room(StreamId id, std::uint32_t bytes) {
  Stream* const stream = find(id);
  if (!stream) return std::nullopt;
  stream->room_used -= bytes;
  const IndexedLane* const lane = served_by(*stream);
  return lane ? std::optional(lane->id()) : std::nullopt;
}

bool Lanes::serves(LaneId id, StreamId stream_id) {
  const Stream* const stream = find(stream_id);
  const IndexedLane* const lane = stream ? served_by(*stream) : nullptr;
  return lane && lane->id() == id;
}

IndexedLane* Lanes::served_by(const Stream& stream) {
  if (stream.from) return stream.from;
  return stream.worker_saw_row ? stream.lane : nullptr;
}

}  // namespace millrace
