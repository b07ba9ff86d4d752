// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/event.h"
#include "base/ring.h"
#include "base/time.h"

namespace millrace {

// The events of one stream that wait before its chunker, in order, each with the instant of
// reading. Confined to one thread.
class WaitingEvents {
 public:
  struct Waiting {
    Event event;
    Time arrived;
  };

  // From this number of events on the sender should be paused.
  static constexpr std::size_t pause_at = 64;
  // From this number on a sender that ignores the pause should be closed.
  static constexpr std::size_t overrun = 8 * pause_at;

  // Frames are joined to the frames before them if those were read at most `grain` earlier.
  explicit WaitingEvents(Duration grain = {}) : grain_(grain) {}

  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const Waiting& front() const { return events_.front(); }

  // Joined frames have the instant of the first of them. Without a grain, frames join those read at
  // the same instant and, if many events wait, any frames right before them. So frames alone never
  // reach pause_at.
  void push(const Event& event, Time now) {
    if (event.kind == Event::Kind::frames && !empty()) {
      Waiting& last = events_.back();
      const bool joins =
          now - last.arrived <= grain_ || (grain_ == Duration{} && size() >= pause_at / 2);
      if (last.event.kind == Event::Kind::frames && joins) {
        last.event.count += event.count;
        return;
      }
    }
    events_.push_back({event, now});
  }

  // Removes the first event; of a frames event at most `frames` frames, the rest stays. Requires:
  // not empty.
  Waiting take(std::uint64_t frames) {
    if (front().event.kind != Event::Kind::frames || front().event.count <= frames)
      return events_.pop_front();
    Waiting part = events_.front();
    part.event.count = frames;
    events_.front().event.count -= frames;
    return part;
  }

  // Replaces frames read before `limit` by gaps; neighbouring gaps become one. Returns the number
  // of frames.
  std::uint64_t shed(Time limit);

  void clear() { events_.clear(); }

 private:
  const Duration grain_;
  Ring<Waiting> events_;
};

}  // namespace millrace
