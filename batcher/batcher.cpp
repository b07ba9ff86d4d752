// SPDX-License-Identifier: Apache-2.0
#include "batcher/batcher.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "chunker/row_layout.h"

namespace millrace {

namespace {

bool may_share(const ReadyRow& row) { return row.row.has_frames() && !row.suspect; }

}  // namespace

Batcher::Batcher(BatchRule rule)
    : rule_(std::move(rule)),
      slots_(rule_.slots),
      framed_(rule_.slots),
      marks_(rule_.slots),
      suspects_(rule_.slots) {
  assert(rule_.slots >= 1 && rule_.rows >= 1 && rule_.max_wait >= Duration(0));
  assert(std::ranges::is_sorted(rule_.row_buckets));
  assert(rule_.row_buckets.empty() || rule_.row_buckets.back() == rule_.rows);
  assert(std::ranges::is_sorted(rule_.width_buckets));
}

std::optional<Slot> Batcher::open(StreamId stream) {
  if (free_slots() == 0) return std::nullopt;
  while (slots_[lowest_free_].taken) ++lowest_free_;
  SlotRows& held = slots_[lowest_free_];
  held.taken = true;
  held.ended = false;
  held.stream = stream;
  held.before = Time::min();
  ++streams_;
  ++open_;
  return Slot{lowest_free_};
}

void Batcher::add(Slot slot, const ReadyRow& row) {
  SlotRows& held = slots_[number(slot)];
  assert(held.taken && !held.ended);
  if (may_share(row) && held.leading == held.rows.size()) {
    ++held.leading;
    ++leading_;
  }
  held.rows.push_back(row);
  ++waiting_;
  if (held.rows.size() == 1) enlist(number(slot));
}

std::optional<Batcher::Choice> Batcher::next(Time now, bool idle) const {
  if (!is_turn_of_suspects())
    if (const auto why = trigger_of_others(now)) return Choice{*why, false};
  if (suspects_.size() > 0 && idle) return Choice{Trigger::full, true};
  return std::nullopt;
}

std::optional<Trigger> Batcher::trigger_of_others(Time now) const {
  const std::uint32_t streams = framed_.size() + marks_.size();
  if (streams == 0) return std::nullopt;
  if (full()) return Trigger::full;
  if (streams + suspects_.size() == open_) return Trigger::complete;
  // max_wait 0 also applies to a row of another thread whose clock is slightly ahead of `now`.
  if (rule_.max_wait == Duration(0) || deadline_of_others() <= now) return Trigger::deadline;
  if (draining_) return Trigger::drain;
  return std::nullopt;
}

Time Batcher::deadline(bool idle) const {
  return is_turn_of_suspects() && !idle ? Time::max() : deadline_of_others();
}

Time Batcher::deadline_of_others() const {
  if (framed_.size() + marks_.size() == 0) return Time::max();
  return std::min(framed_.oldest(), marks_.oldest()) + rule_.max_wait;
}

bool Batcher::full() const { return (rule_.stateful ? framed_.size() : leading_) >= rule_.rows; }

void Batcher::close(const Choice& choice, Time now, Batch& batch) {
  assert(next(now, true) == choice);
  batch.trigger = choice.why;
  batch.closed = now;
  batch.framed.clear();
  batch.marks.clear();
  after_suspect_ = choice.trial;
  posts_ = 0;
  if (choice.trial) return take_suspect(now, batch);

  do {
    const std::size_t free_rows = rule_.rows - batch.framed.size();
    take_oldest(framed_, std::min<std::size_t>(framed_.size(), free_rows), now, batch.framed);
  } while (!rule_.stateful && framed_.size() > 0 && batch.framed.size() < rule_.rows &&
           takes_more());
  // Marker rows come second: a marker row may follow a row of its stream in the same batch, but a
  // row with frames must not follow a marker row. One marker row of each stream always fits.
  while (marks_.size() > 0 && batch.marks.size() < rule_.slots && takes_more()) {
    const std::size_t free_marks = rule_.slots - batch.marks.size();
    take_oldest(marks_, std::min<std::size_t>(marks_.size(), free_marks), now, batch.marks);
  }
  set_shape(batch);
}

void Batcher::take_suspect(Time now, Batch& batch) {
  const std::uint32_t slot = suspects_.pop();
  SlotRows& held = slots_[slot];
  const ReadyRow row = take_front(held, now);
  (row.row.has_frames() ? batch.framed : batch.marks).push_back({held.stream, Slot{slot}, row});
  enlist(slot);
  set_shape(batch);
}

// Takes the first row of each of the `count` oldest streams. The streams are put back into a list
// afterwards, so that no stream is taken twice, whatever the age of its next row.
void Batcher::take_oldest(AgeList& list, std::size_t count, Time now, std::vector<BatchRow>& into) {
  const std::size_t first = into.size();
  for (; count > 0 && takes_more(); --count) {
    const std::uint32_t slot = list.pop();
    SlotRows& held = slots_[slot];
    into.push_back({held.stream, Slot{slot}, take_front(held, now)});
  }
  for (std::size_t i = first; i < into.size(); ++i) enlist(number(into[i].slot));
}

ReadyRow Batcher::take_front(SlotRows& held, Time now) {
  const ReadyRow row = held.rows.pop_front();
  held.before = now;
  --waiting_;
  if (row.posts) posts_ += bytes_of(*row.posts);
  if (may_share(row)) {
    --held.leading;
    --leading_;
  } else {
    while (held.leading < held.rows.size() && may_share(held.rows[held.leading])) ++held.leading;
    leading_ += held.leading;
  }
  if (row.row.is(flag::end)) {
    held.ended = true;
    --open_;
  }
  return row;
}

void Batcher::enlist(std::uint32_t slot) {
  const SlotRows& held = slots_[slot];
  if (held.rows.empty()) return;
  const ReadyRow& row = held.rows.front();
  list_of(row).insert(slot, std::max(row.ready, held.before));
}

void Batcher::release(Slot slot) {
  SlotRows& held = slots_[number(slot)];
  assert(held.taken && held.ended && held.rows.empty());
  free(held);
}

std::vector<ReadyRow> Batcher::take(Slot slot) {
  SlotRows& held = slots_[number(slot)];
  assert(held.taken);
  std::vector<ReadyRow> rows;
  rows.reserve(held.rows.size());
  for (std::size_t i = 0; i < held.rows.size(); ++i) rows.push_back(held.rows[i]);
  if (!rows.empty()) list_of(rows.front()).erase(number(slot));
  waiting_ -= rows.size();
  leading_ -= held.leading;
  held.leading = 0;
  held.rows.clear();
  return rows;
}

std::vector<ReadyRow> Batcher::remove(Slot slot) {
  std::vector<ReadyRow> rows = take(slot);
  SlotRows& held = slots_[number(slot)];
  if (!held.ended) --open_;
  free(held);
  return rows;
}

void Batcher::free(SlotRows& held) {
  held.taken = false;
  --streams_;
  lowest_free_ = std::min(lowest_free_, static_cast<std::uint32_t>(&held - slots_.data()));
}

std::size_t Batcher::waiting(Slot slot) const { return slots_[number(slot)].rows.size(); }

std::vector<StreamId> Batcher::holders() const {
  std::vector<StreamId> streams;
  streams.reserve(streams_);
  for (const SlotRows& held : slots_)
    if (held.taken) streams.push_back(held.stream);
  return streams;
}

void Batcher::set_shape(Batch& batch) const {
  std::uint32_t widest = 0;
  for (const BatchRow& row : batch.framed) {
    const Row& at = row.ready.row;
    widest = std::max(widest, rule_.columns.needed(at.left, at.size, at.right));
  }
  const auto framed = static_cast<std::uint32_t>(batch.framed.size());
  batch.rows = framed == 0 ? 0 : padded_length(rule_.row_buckets, framed);
  batch.width = padded_length(rule_.width_buckets, widest);
}

}  // namespace millrace
