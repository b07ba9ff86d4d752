// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace millrace {

void LaneEvents::clear() {
  taken.clear();
  done.clear();
  dropped.clear();
  gone.clear();
  overdue.clear();
  left.clear();
}

Lanes::Lanes(LanesRule rule) : rule_(std::move(rule)) {}

void Lanes::open(StreamId id, Time now) {
  Stream& stream = streams_.try_emplace(id).first->second;
  stream.id = id;
  wait(stream, now);
  place_waiting();
}

void Lanes::add(StreamId id, ReadyRow row) {
  Stream* stream = find(id);
  if (!stream) return;
  if (row.row.is(flag::abort) && !stream->had) {
    events_.dropped.push_back({id, std::nullopt});
    forget(*stream);
    place_waiting();
    empty_leaving();
    return;
  }
  stream->ending |= row.row.is(flag::end);
  feed(*stream, std::move(row));
}

LaneId Lanes::attach(std::uint32_t credits, Time now) {
  const LaneId id{next_lane_++};
  Lane& lane = lanes_.try_emplace(id, id, rule_.batch, credits, now).first->second;
  if (draining_) lane.batcher().drain();
  place_waiting();
  empty_leaving();
  return id;
}

void Lanes::heard(LaneId id, Time now) {
  if (const auto lane = lanes_.find(id); lane != lanes_.end()) lane->second.heard(now);
}

void Lanes::pardon(Time now) {
  for (auto& [id, lane] : lanes_) lane.pardon(now);
}

void Lanes::bye(LaneId id, Time now) {
  const auto lane = lanes_.find(id);
  if (lane == lanes_.end()) return;
  lane->second.leave(now);
  empty_leaving();
}

void Lanes::lost(LaneId id, Time now) {
  const auto lane = lanes_.find(id);
  if (lane == lanes_.end()) return;
  take_back(lane->second, now);
  lanes_.erase(lane);
  place_waiting();
  empty_leaving();
}

void Lanes::set_slab(LaneId id, bool free, Time now) {
  const auto found = lanes_.find(id);
  if (found != lanes_.end()) found->second.set_slab(free, now);
}

bool Lanes::wants_slab(LaneId id, Time now) const {
  const auto found = lanes_.find(id);
  return found != lanes_.end() && found->second.wants_slab(now);
}

Batch* Lanes::next(LaneId id, Time now) {
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return nullptr;
  Batch* batch = found->second.close(BatchId{next_batch_}, now);
  if (!batch) return nullptr;
  ++next_batch_;
  opened_.clear();
  for (auto* rows : {&batch->framed, &batch->marks})
    for (BatchRow& row : *rows) {
      Stream& stream = *find(row.stream);
      ++stream.handed;
      stream.had = true;
      if (!std::exchange(stream.begun, true)) opened_.push_back(&row);
      if (!std::exchange(row.ready.handed, true)) events_.taken.push_back(row.stream);
    }
  return batch;
}

Lanes::Given Lanes::done(LaneId id, BatchId batch_id, std::span<Answer> answers,
                         std::span<Answer> mark_answers, Time now) {
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return Given::repeated;
  Lane& lane = found->second;
  switch (lane.order_of(batch_id)) {
    case Lane::Order::again: return Given::repeated;
    case Lane::Order::wrong: return Given::wrong;
    case Lane::Order::next: break;
  }
  const Batch& oldest = lane.held().front();
  if (!answers.empty() && answers.size() != oldest.framed.size()) return Given::wrong;
  if (!mark_answers.empty() && mark_answers.size() != oldest.marks.size()) return Given::wrong;

  Batch batch = lane.finish(now);
  const auto finish = [&](std::vector<BatchRow>& rows, std::span<Answer> given) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      finish_row(lane, rows[i], given.empty() ? Answer{} : std::move(given[i]), batch.closed, now);
  };
  finish(batch.framed, answers);
  finish(batch.marks, mark_answers);
  lane.reuse(std::move(batch));
  place_waiting();
  empty_leaving();
  return Given::taken;
}

void Lanes::drain(Time give_up) {
  draining_ = true;
  give_up_ = give_up;
  for (auto& [id, lane] : lanes_) lane.batcher().drain();
}

// A stream that a leaving worker still serves does not wait yet.
Time Lanes::gives_up(const std::pair<Time, StreamId>& waiting) const {
  if (streams_.at(waiting.second).handed > 0) return Time::max();
  return std::min(waiting.first + rule_.worker_wait, give_up_);
}

Time Lanes::deadline() const {
  Time due = Time::max();
  for (const auto& waiting : waiting_) {
    due = gives_up(waiting);
    if (due != Time::max()) break;
  }
  for (const auto& [id, lane] : lanes_)
    due = std::min({due, lane.batch_deadline(), lane.lost_at(rule_.patience)});
  return due;
}

void Lanes::expire(Time now) {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const auto at = waiting++;
    const Time due = gives_up(*at);
    if (due == Time::max()) continue;
    if (due > now) break;
    events_.dropped.push_back({at->second, ErrorCode::no_worker});
    forget(*find(at->second));
  }
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    if (lane->second.lost_at(rule_.patience) > now) {
      ++lane;
      continue;
    }
    events_.overdue.push_back(lane->first);
    take_back(lane->second, now);
    lane = lanes_.erase(lane);
  }
  place_waiting();
  empty_leaving();
}

std::uint64_t Lanes::capacity() const {
  const auto staying =
      std::ranges::count_if(lanes_, [](const auto& entry) { return !entry.second.leaving(); });
  return std::uint64_t{rule_.batch.slots} *
         static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(1, staying));
}

Lanes::Stream* Lanes::find(StreamId id) {
  const auto stream = streams_.find(id);
  return stream == streams_.end() ? nullptr : &stream->second;
}

// Streams spread evenly: the lane with the most free slots, if any has one.
Lane* Lanes::roomiest() {
  Lane* best = nullptr;
  for (auto& [id, lane] : lanes_)
    if (!lane.leaving() && lane.batcher().room() > (best ? best->batcher().room() : 0))
      best = &lane;
  return best;
}

void Lanes::place(Stream& stream, Lane& lane) {
  stream.lane = &lane;
  stream.slot = lane.batcher().open(stream.id).value();
  stream.begun = false;
  if (!stream.from) feed_held(stream);
}

void Lanes::wait(Stream& stream, Time now) {
  stream.lane = nullptr;
  stream.begun = false;
  stream.waiting_since = now;
  waiting_.emplace(now, stream.id);
}

void Lanes::place_waiting() {
  while (!waiting_.empty()) {
    Lane* lane = roomiest();
    if (!lane) return;
    Stream& stream = *find(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    place(stream, *lane);
  }
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
}

void Lanes::feed_held(Stream& stream) {
  for (ReadyRow& row : std::exchange(stream.held, {})) feed(stream, std::move(row));
}

void Lanes::finish_row(Lane& lane, BatchRow& row, Answer answer, Time closed, Time now) {
  Stream& stream = *find(row.stream);
  const bool last = row.ready.row.is(flag::last), end = row.ready.row.is(flag::end);
  events_.done.push_back({row.stream, std::move(row.ready), std::move(answer), closed});
  --stream.handed;
  if (end) {
    forget(stream);
  } else if (stream.from == &lane) {
    if (stream.handed == 0) arrive(stream, now);
  } else if (stream.lane == &lane && lane.leaving() &&
             (last || now - *lane.leaving() >= rule_.bye_wait)) {
    move_away(stream, lane);
  }
}

// Rows handed over and not done go back in front of what their streams hold; those that were in
// the oldest batch of two lost workers are given up.
void Lanes::take_back_batches(Lane& lane, Time now) {
  std::unordered_map<StreamId, std::deque<ReadyRow>> again;
  for (bool oldest = true; !lane.held().empty(); oldest = false) {
    Batch batch = lane.finish(now);
    for (auto* rows : {&batch.framed, &batch.marks})
      for (BatchRow& row : *rows) {
        if (oldest && ++row.ready.lost == 2) {
          finish_row(lane, row, Answer{Answer::Kind::error, "two workers were lost over this row"},
                     batch.closed, now);
        } else {
          --find(row.stream)->handed;
          again[row.stream].push_back(std::move(row.ready));
        }
      }
  }
  for (auto& [id, rows] : again) {
    std::deque<ReadyRow>& held = find(id)->held;
    held.insert(held.begin(), std::move_iterator(rows.begin()), std::move_iterator(rows.end()));
  }
}

void Lanes::take_back(Lane& lane, Time now) {
  for (auto& [id, stream] : streams_) {
    if (stream.lane != &lane) continue;
    for (ReadyRow& row : lane.batcher().remove(stream.slot)) stream.held.push_back(std::move(row));
    stream.reset_due |= stream.begun;
    wait(stream, now);
  }
  take_back_batches(lane, now);
  for (auto& [id, stream] : streams_)
    if (stream.from == &lane) arrive(stream, now);
}

// Its rows in batches stay to be done there; what follows waits for them and then goes to the
// new lane.
void Lanes::move_away(Stream& stream, Lane& from) {
  if (stream.ending) return;
  Lane* to = roomiest();
  if (!to) return;
  for (ReadyRow& row : from.batcher().remove(stream.slot)) stream.held.push_back(std::move(row));
  stream.reset_due |= stream.begun;
  if (stream.handed > 0) stream.from = &from;
  place(stream, *to);
}

// No row of a stream that moved is in its old lane any more: it goes on in the new one or, where
// that is gone, waits for another from now on.
void Lanes::arrive(Stream& stream, Time now) {
  stream.from = nullptr;
  if (stream.lane) return feed_held(stream);
  waiting_.erase({stream.waiting_since, stream.id});
  wait(stream, now);
}

// Streams of which a leaving worker had no row move as soon as there is room; a leaving lane
// without streams is ended.
void Lanes::empty_leaving() {
  const auto leaving = [](const auto& entry) { return entry.second.leaving().has_value(); };
  if (std::ranges::none_of(lanes_, leaving)) return;
  for (auto& [id, stream] : streams_)
    if (stream.lane && stream.lane->leaving() && !stream.begun && !stream.from)
      move_away(stream, *stream.lane);
  std::erase_if(lanes_, [&](const auto& entry) {
    const Lane& lane = entry.second;
    if (!lane.leaving() || lane.batcher().streams() > 0 || !lane.held().empty()) return false;
    events_.left.push_back(entry.first);
    return true;
  });
}

void Lanes::forget(Stream& stream) {
  if (stream.lane)
    stream.lane->batcher().remove(stream.slot);
  else
    waiting_.erase({stream.waiting_since, stream.id});
  events_.gone.push_back(stream.id);
  streams_.erase(stream.id);
}

}  // namespace millrace
