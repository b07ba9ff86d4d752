// SPDX-License-Identifier: Apache-2.0
#include "streams/waiting_events.h"

namespace millrace {
namespace {

using Kind = Event::Kind;

bool is_shed(const Event& event) { return event.kind == Kind::gap && event.cause == Cause::load; }

}  // namespace

std::uint64_t WaitingEvents::shed(Time limit) {
  const auto is_late = [&](const Waiting& waiting) {
    return waiting.event.kind == Kind::frames && waiting.arrived < limit;
  };
  // Events are in the order of reading.
  std::size_t first = 0;
  while (first < size() && events_[first].arrived < limit && !is_late(events_[first])) ++first;
  if (first == size() || !is_late(events_[first])) return 0;

  std::uint64_t frames = 0;
  std::size_t kept = 0;
  for (std::size_t left = size(); left > 0; --left) {
    Waiting waiting = events_.pop_front();
    if (is_late(waiting)) {
      frames += waiting.event.count;
      waiting.event = {.kind = Kind::gap, .cause = Cause::load, .count = waiting.event.count};
    }
    if (kept > 0 && is_shed(waiting.event) && is_shed(events_.back().event)) {
      events_.back().event.count += waiting.event.count;
    } else {
      events_.push_back(waiting);
      ++kept;
    }
  }
  return frames;
}

}  // namespace millrace
