// SPDX-License-Identifier: Apache-2.0
#include "tests/batcher/lane_model.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace millrace::test {

void demand(bool holds, const char* rule) {
  if (!holds) throw std::logic_error(rule);
}

namespace {

bool framed(const ReadyRow& row) { return row.row.has_frames() && !row.suspect; }
bool mark(const ReadyRow& row) { return !row.row.has_frames() && !row.suspect; }

}  // namespace

std::optional<Slot> LaneModel::open(StreamId id) {
  std::set<Slot> taken;
  for (const auto& [_, stream] : streams_)
    demand(taken.insert(stream.slot).second, "no two streams share a slot");
  for (std::uint32_t slot = 0; slot < rule_.slots; ++slot)
    if (!taken.contains(Slot{slot})) {
      streams_[id].slot = Slot{slot};
      return Slot{slot};
    }
  return std::nullopt;
}

void LaneModel::add(StreamId id, const ReadyRow& row) { streams_.at(id).rows.push_back(row); }

std::vector<ReadyRow> LaneModel::remove(StreamId id) {
  const auto& rows = streams_.at(id).rows;
  std::vector<ReadyRow> left(rows.begin(), rows.end());
  streams_.erase(id);
  return left;
}

Time LaneModel::age(const Stream& stream) {
  return std::max(stream.rows.front().ready, stream.before);
}

std::size_t LaneModel::takeable_framed() const {
  std::size_t count = 0;
  for (const auto& [_, stream] : streams_)
    for (const ReadyRow& row : stream.rows) {
      if (!framed(row)) break;
      ++count;
      if (rule_.stateful) break;
    }
  return count;
}

std::size_t LaneModel::takeable_marks() const {
  std::size_t count = 0;
  for (const auto& [_, stream] : streams_)
    for (const ReadyRow& row : stream.rows) {
      if (!mark(row)) break;
      ++count;
    }
  return count;
}

bool LaneModel::tried_alone(const Stream& stream) {
  return !stream.rows.empty() && stream.rows.front().suspect;
}

bool LaneModel::has_suspect() const {
  return std::ranges::any_of(streams_, [](const auto& entry) { return tried_alone(entry.second); });
}

Time LaneModel::deadline(bool idle) const {
  return has_suspect() && !others_are_next_ && !idle ? Time::max() : deadline_of_others();
}

Time LaneModel::deadline_of_others() const {
  Time earliest = Time::max();
  for (const auto& [_, stream] : streams_)
    if (!stream.rows.empty() && !tried_alone(stream))
      earliest = std::min(earliest, age(stream) + rule_.max_wait);
  return earliest;
}

std::optional<Batcher::Choice> LaneModel::next(Time now, bool idle) const {
  const auto others = trigger_of_others(now);
  const bool trial = has_suspect() && !(others_are_next_ && others);
  if (trial && !idle) return std::nullopt;
  if (trial) return Batcher::Choice{Trigger::full, true};
  return others ? std::optional(Batcher::Choice{*others, false}) : std::nullopt;
}

std::optional<Trigger> LaneModel::trigger_of_others(Time now) const {
  if (takeable_framed() + takeable_marks() == 0) return std::nullopt;
  if (takeable_framed() >= rule_.rows) return Trigger::full;
  if (std::ranges::all_of(streams_, [](const auto& entry) {
        return entry.second.ended || !entry.second.rows.empty();
      }))
    return Trigger::complete;
  if (deadline_of_others() <= now) return Trigger::deadline;
  if (draining_) return Trigger::drain;
  return std::nullopt;
}

std::size_t LaneModel::waiting() const {
  std::size_t count = 0;
  for (const auto& [_, stream] : streams_) count += stream.rows.size();
  return count;
}

// The row must be the next of its stream: no row is lost, repeated or overtaken.
void LaneModel::take(const BatchRow& row, Time now) {
  Stream& stream = streams_.at(row.stream);
  demand(row.slot == stream.slot, "a row has its stream's slot");
  demand(!stream.rows.empty(), "no row is taken twice");
  demand(stream.rows.front().row == row.ready.row, "rows of a stream come in order");
  demand(stream.rows.front().ready == row.ready.ready &&
             stream.rows.front().suspect == row.ready.suspect,
         "rows come as they were added");
  stream.rows.pop_front();
  stream.before = now;
  if (row.ready.row.is(flag::end)) stream.ended = true;
}

void LaneModel::judge(const Batch& batch, const Batcher::Choice& choice, Time now) {
  demand(batch.trigger == choice.why && batch.closed == now,
         "a batch has the instant and the trigger of its end");
  demand(!batch.framed.empty() || !batch.marks.empty(), "no batch is empty");
  judge_width(batch);
  others_are_next_ = choice.trial;
  if (choice.trial) return judge_suspect(batch, now);
  judge_framed(batch, now);
  judge_marks(batch, now);
}

void LaneModel::judge_width(const Batch& batch) const {
  if (rule_.width_buckets.empty()) return;
  for (const std::uint32_t width : rule_.width_buckets) {
    const bool holds_all = std::ranges::all_of(batch.framed, [&](const BatchRow& row) {
      const Row& at = row.ready.row;
      return std::max(at.left, rule_.columns.context) + at.size + at.right <= width;
    });
    if (holds_all) return demand(batch.width == width, "the narrowest width is taken");
  }
  demand(false, "a width holds the rows");
}

void LaneModel::judge_suspect(const Batch& batch, Time now) {
  demand(batch.framed.size() + batch.marks.size() == 1, "a suspect is alone in its batch");
  demand(batch.rows <= rule_.rows, "a trial has at most batch.rows rows");
  const BatchRow& row = batch.framed.empty() ? batch.marks.front() : batch.framed.front();
  demand(row.ready.suspect && batch.is_trial(), "on a suspect's turn a suspect is alone");
  for (const auto& [_, stream] : streams_)
    if (tried_alone(stream))
      demand(age(stream) >= age(streams_.at(row.stream)), "the oldest suspect goes first");
  take(row, now);
}

void LaneModel::judge_framed(const Batch& batch, Time now) {
  const std::size_t most = std::min<std::size_t>(takeable_framed(), rule_.rows);
  demand(batch.framed.size() == most, "all rows with frames that fit are taken");
  std::set<StreamId> seen;
  Time youngest = Time::min();
  for (const BatchRow& row : batch.framed) {
    demand(framed(row.ready), "rows of the tensor have frames");
    const bool again = !seen.insert(row.stream).second;
    demand(!again || !rule_.stateful, "a stream has one row with frames in a batch");
    const Time oldest = age(streams_.at(row.stream));
    demand(youngest <= oldest, "rows come oldest first");
    youngest = oldest;
    take(row, now);
  }
  if (!batch.framed.empty())
    for (const auto& [id, stream] : streams_)
      if (!stream.rows.empty() && framed(stream.rows.front()) && !seen.contains(id))
        demand(age(stream) >= youngest, "no younger row is preferred");

  std::size_t tensor = batch.framed.size();
  if (tensor > 0 && !rule_.row_buckets.empty())
    while (!std::ranges::count(rule_.row_buckets, tensor)) ++tensor;
  demand(batch.rows == tensor, "the tensor has the length of the smallest bucket");
}

void LaneModel::judge_marks(const Batch& batch, Time now) {
  const std::size_t most = std::min<std::size_t>(takeable_marks(), rule_.slots);
  demand(batch.marks.size() == most, "all marker rows that fit are taken");
  Time youngest = Time::min();
  for (const BatchRow& row : batch.marks) {
    demand(mark(row.ready), "marker rows have no frames");
    const Time oldest = age(streams_.at(row.stream));
    demand(youngest <= oldest, "marker rows come oldest first");
    youngest = oldest;
    take(row, now);
  }
  if (!batch.marks.empty())
    for (const auto& [_, stream] : streams_)
      if (!stream.rows.empty() && mark(stream.rows.front()))
        demand(age(stream) >= youngest, "no younger marker row is preferred");
}

}  // namespace millrace::test
