// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/event.h"
#include "base/ring.h"
#include "base/time.h"

namespace millrace {

// The events of one stream that wait in front of its chunker, in order, each with the instant when
// it was read. Confined to one thread.
class WaitingEvents {
 public:
  struct Waiting {
    Event event;
    Time arrived;
  };

  // From so many on the sender is to be paused.
  static constexpr std::size_t crowded = 64;
  // And from so many on to be ended, if it sends all the same.
  static constexpr std::size_t overrun = 8 * crowded;

  // Frames join those read at most `grain` before them.
  explicit WaitingEvents(Duration grain = {}) : grain_(grain) {}

  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const Waiting& front() const { return events_.front(); }

  // Frames that join others count as read when the first of them was. Without a grain they join
  // those read at the same instant, and where many events wait, all that stand right before them.
  // So frames alone are never a crowd.
  void push(const Event& event, Time now) {
    if (event.kind == Event::Kind::frames && !empty()) {
      Waiting& last = events_.back();
      const bool joins =
          now - last.arrived <= grain_ || (grain_ == Duration{} && size() >= crowded / 2);
      if (last.event.kind == Event::Kind::frames && joins) {
        last.event.count += event.count;
        return;
      }
    }
    events_.push_back({event, now});
  }

  // The first event; of frames, at most `frames`, the others stay. Requires: there is one.
  Waiting take(std::uint64_t frames) {
    if (front().event.kind != Event::Kind::frames || front().event.count <= frames)
      return events_.pop_front();
    Waiting part = events_.front();
    part.event.count = frames;
    events_.front().event.count -= frames;
    return part;
  }

  // Frames read before `limit` become gaps where they stood, neighbours one. How many it were.
  std::uint64_t shed(Time limit);

  void clear() { events_.clear(); }

 private:
  const Duration grain_;
  Ring<Waiting> events_;
};

}  // namespace millrace
