// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "workers/lanes/lanes.h"

namespace millrace::test {

// The LaneEvents of Lanes, by kind.
struct SortedEvents {
  struct Done : RowDone {
    StreamId stream;
  };
  struct Dropped : StreamDropped {
    StreamId stream;
  };

  struct Message : WorkerMessage {
    StreamId stream;
  };

  explicit SortedEvents(LaneEvents events)
      : posts(std::move(events.posts)),
        finished(std::move(events.finished)),
        overdue(std::move(events.overdue)),
        why_overdue(std::move(events.why_overdue)),
        left(std::move(events.left)) {
    for (Returned& one : events.returned) {
      if (auto* row = std::get_if<RowDone>(&one.what))
        done.push_back({std::move(*row), one.stream});
      else if (const auto* drop = std::get_if<StreamDropped>(&one.what))
        dropped.push_back({*drop, one.stream});
      else if (auto* message = std::get_if<WorkerMessage>(&one.what))
        messages.push_back({std::move(*message), one.stream});
      else
        batched.push_back(one.stream);
    }
  }

  std::vector<StreamId> batched;
  std::vector<Done> done;
  std::vector<Dropped> dropped;
  std::vector<Message> messages;
  decltype(LaneEvents::posts) posts;
  std::vector<StreamId> finished;
  std::vector<LaneId> overdue;
  std::vector<std::string> why_overdue;
  std::vector<LaneId> left;
};

// The instants of a batch that was copied and computed in no time.
inline Instants done_at(Time now) {
  Instants at;
  at.copied = at.taken = at.done = now;
  return at;
}

}  // namespace millrace::test
