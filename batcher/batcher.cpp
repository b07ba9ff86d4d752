// SPDX-License-Identifier: Apache-2.0
#include "batcher/batcher.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace millrace {

namespace {

bool may_share(const ReadyRow& row) { return row.row.has_frames() && !row.suspect; }

}  // namespace

Batcher::Batcher(BatchRule rule)
    : rule_(std::move(rule)),
      places_(rule_.slots),
      framed_(rule_.slots),
      marks_(rule_.slots),
      suspects_(rule_.slots) {
  assert(rule_.slots >= 1 && rule_.rows >= 1 && rule_.max_wait >= Duration(0));
  assert(std::ranges::is_sorted(rule_.row_buckets));
  assert(rule_.row_buckets.empty() || rule_.row_buckets.back() == rule_.rows);
}

std::optional<Slot> Batcher::open(StreamId stream) {
  if (room() == 0) return std::nullopt;
  while (places_[lowest_free_].taken) ++lowest_free_;
  Place& place = places_[lowest_free_];
  place.taken = true;
  place.ended = false;
  place.stream = stream;
  place.before = Time::min();
  ++streams_;
  ++open_;
  return Slot{lowest_free_};
}

void Batcher::add(Slot slot, const ReadyRow& row) {
  Place& place = places_[number(slot)];
  assert(place.taken && !place.ended);
  if (may_share(row) && place.leading == place.rows.size()) {
    ++place.leading;
    ++leading_;
  }
  place.rows.push_back(row);
  ++waiting_;
  if (place.rows.size() == 1) enlist(number(slot));
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
  // Without a wait also for a row of another thread, whose clock may be a little ahead of `now`.
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
  if (choice.trial) return take_suspect(now, batch);

  do {
    const std::size_t room = rule_.rows - batch.framed.size();
    take_oldest(framed_, std::min<std::size_t>(framed_.size(), room), now, batch.framed);
  } while (!rule_.stateful && framed_.size() > 0 && batch.framed.size() < rule_.rows);
  // Marker rows come second: those behind a row just taken may follow it, and a row with frames
  // behind a marker row must not. One of each stream always has room.
  while (marks_.size() > 0 && batch.marks.size() < rule_.slots) {
    const std::size_t room = rule_.slots - batch.marks.size();
    take_oldest(marks_, std::min<std::size_t>(marks_.size(), room), now, batch.marks);
  }
  batch.rows = tensor_rows(batch.framed.size());
}

void Batcher::take_suspect(Time now, Batch& batch) {
  const std::uint32_t slot = suspects_.pop();
  Place& place = places_[slot];
  const ReadyRow row = take_front(place, now);
  (row.row.has_frames() ? batch.framed : batch.marks).push_back({place.stream, Slot{slot}, row});
  enlist(slot);
  batch.rows = tensor_rows(batch.framed.size());
}

// Takes the first row of each of the `count` oldest streams. Only then do these streams get back
// into a list: none of them is taken twice, whatever its next row's age.
void Batcher::take_oldest(AgeList& list, std::size_t count, Time now, std::vector<BatchRow>& into) {
  const std::size_t first = into.size();
  for (; count > 0; --count) {
    const std::uint32_t slot = list.pop();
    Place& place = places_[slot];
    into.push_back({place.stream, Slot{slot}, take_front(place, now)});
  }
  for (std::size_t i = first; i < into.size(); ++i) enlist(number(into[i].slot));
}

ReadyRow Batcher::take_front(Place& place, Time now) {
  const ReadyRow row = place.rows.pop_front();
  place.before = now;
  --waiting_;
  if (may_share(row)) {
    --place.leading;
    --leading_;
  } else {
    while (place.leading < place.rows.size() && may_share(place.rows[place.leading]))
      ++place.leading;
    leading_ += place.leading;
  }
  if (row.row.is(flag::end)) {
    place.ended = true;
    --open_;
  }
  return row;
}

void Batcher::enlist(std::uint32_t slot) {
  const Place& place = places_[slot];
  if (place.rows.empty()) return;
  const ReadyRow& row = place.rows.front();
  list_of(row).insert(slot, std::max(row.ready, place.before));
}

void Batcher::release(Slot slot) {
  Place& place = places_[number(slot)];
  assert(place.taken && place.ended && place.rows.empty());
  free(place);
}

std::vector<ReadyRow> Batcher::remove(Slot slot) {
  Place& place = places_[number(slot)];
  assert(place.taken);
  std::vector<ReadyRow> rows;
  rows.reserve(place.rows.size());
  for (std::size_t i = 0; i < place.rows.size(); ++i) rows.push_back(place.rows[i]);
  if (!rows.empty()) list_of(rows.front()).erase(number(slot));
  waiting_ -= rows.size();
  leading_ -= place.leading;
  if (!place.ended) --open_;
  place.leading = 0;
  place.rows.clear();
  free(place);
  return rows;
}

void Batcher::free(Place& place) {
  place.taken = false;
  --streams_;
  lowest_free_ = std::min(lowest_free_, static_cast<std::uint32_t>(&place - places_.data()));
}

std::size_t Batcher::waiting(Slot slot) const { return places_[number(slot)].rows.size(); }

std::vector<StreamId> Batcher::holders() const {
  std::vector<StreamId> streams;
  streams.reserve(streams_);
  for (const Place& place : places_)
    if (place.taken) streams.push_back(place.stream);
  return streams;
}

std::uint32_t Batcher::tensor_rows(std::size_t framed) const {
  if (framed == 0 || rule_.row_buckets.empty()) return static_cast<std::uint32_t>(framed);
  return *std::ranges::lower_bound(rule_.row_buckets, framed);
}

}  // namespace millrace
