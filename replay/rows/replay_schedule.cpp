// SPDX-License-Identifier: Apache-2.0
#include "replay/rows/replay_schedule.h"

#include <algorithm>
#include <utility>

#include "replay/rows/pace.h"

namespace millrace {
namespace {

// The time from one open to the next. The steady clock is exact; the wall clock, which may step,
// counts only if the steady clock began anew.
Duration between(const recording::StreamMeta& before, const recording::StreamMeta& after) {
  const Duration steady(after.opened_steady - before.opened_steady);
  if (steady >= Duration{}) return steady;
  return std::max(Duration{}, Duration(after.opened_wall - before.opened_wall));
}

}  // namespace

ReplaySchedule::ReplaySchedule(std::span<const recording::StreamMeta> streams,
                               const ScheduleRule& rule)
    : rule_(rule) {
  Duration offset{};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (i > 0) offset += between(streams[i - 1], streams[i]);
    streams_.push_back({.name = streams[i].name, .offset = offset});
    waiting_.insert(waiting_.end(), i);
  }
}

// The first stream whose name is free. At a speed, later ones are due later.
std::optional<std::size_t> ReplaySchedule::first() const {
  for (const std::size_t stream : waiting_)
    if (!rule_.unique_names || !names_.contains(streams_[stream].name)) return stream;
  return std::nullopt;
}

Time ReplaySchedule::due_of(std::size_t stream) const {
  if (!origin_) return Time::min();
  const Pace pace{.speed = rule_.speed, .opened = Time{}, .begun = *origin_};
  return pace.due(Time{} + streams_[stream].offset);
}

Time ReplaySchedule::room_from() const {
  if (active_ < room_) return Time::min();
  return opening_ == 0 ? retry_ : Time::max();
}

std::optional<std::size_t> ReplaySchedule::next(Time now) {
  const auto stream = first();
  if (!stream || !may_begin() || now < room_from()) return std::nullopt;
  if (!origin_) origin_ = now;
  const Time due = due_of(*stream);
  if (due <= now) return stream;
  if (active_ > 0) return std::nullopt;
  *origin_ -= due - now;  // no stream is open: the time until the next one is skipped
  return stream;
}

void ReplaySchedule::begin(std::size_t stream) {
  waiting_.erase(stream);
  names_.insert(streams_[stream].name);
  ++active_;
  ++opening_;
}

void ReplaySchedule::opened(std::size_t stream) {
  if (std::exchange(streams_[stream].opened, true)) return;
  --opening_;
  room_ = std::max(room_, active_ - opening_);
  most_open_ = std::max(most_open_, active_ - opening_);
}

void ReplaySchedule::leave(std::size_t stream) {
  names_.erase(names_.find(streams_[stream].name));
  if (!std::exchange(streams_[stream].opened, false)) --opening_;
  --active_;
}

// The refusal of a stream that took the place of another one may only mean that the place was not
// free yet.
void ReplaySchedule::over(std::size_t stream) {
  leave(stream);
  if (room_ < most_open_) retry_ = Time::min();
}

void ReplaySchedule::postpone(std::size_t stream, Time retry) {
  leave(stream);
  waiting_.insert(stream);
  room_ = active_ - opening_;
  retry_ = std::max(retry_, retry);
}

Time ReplaySchedule::due() const {
  const auto stream = first();
  if (!stream || !may_begin()) return Time::max();
  return std::max(room_from(), due_of(*stream));
}

}  // namespace millrace
