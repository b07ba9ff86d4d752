// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/workers/lanes/sorted_events.h"
#include "workers/lanes/lanes.h"

namespace millrace::test {

using namespace std::chrono_literals;

constexpr Time t0{1h};

// Lanes with two slots per worker by default, and batches of up to four rows that do not wait.
struct Pipeline {
  Lanes lanes;
  std::unordered_map<StreamId, std::uint64_t> seq;
  Time now = t0;

  explicit Pipeline(std::uint32_t slots = 2, Duration max_wait = 0s, Duration worker_wait = 30s,
                    bool stateful = true)
      : lanes(LanesRule{.batch = {.slots = slots,
                                  .rows = std::max(slots, 4u),
                                  .max_wait = max_wait,
                                  .stateful = stateful},
                        .worker_wait = worker_wait,
                        .bye_wait = 60s,
                        .timeouts = {.silence = 6s, .answer = 10s, .first_answer = 120s}}) {}

  StreamId open(std::uint64_t id) {
    lanes.open(StreamId{id}, now);
    return StreamId{id};
  }
  void row(StreamId stream, std::uint8_t flags = 0, std::uint32_t size = 10) {
    ReadyRow ready;
    ready.row.seq = seq[stream]++;
    ready.row.size = size;
    ready.row.flags = flags;
    if (ready.row.seq == 0) ready.row.flags |= flag::start | flag::reset | flag::segment;
    if (flags & flag::reset) ready.row.reason = ResetReason::client;
    ready.ready = now;
    lanes.add(stream, ready);
  }
  // The rows of the next batch as stream.seq, with an R after rows that carry RESET(worker_lost).
  std::string next(LaneId lane, bool has_slab = true) {
    const Batch* batch = lanes.next(lane, has_slab, now);
    if (!batch) return "none";
    last = batch->id;
    std::string text;
    for (const auto* rows : {&batch->framed, &batch->marks})
      for (const BatchRow& row : *rows)
        text += (text.empty() ? "" : " ") + std::to_string(number(row.stream)) + "." +
                std::to_string(row.ready.row.seq) +
                (row.ready.row.reason == ResetReason::worker_lost ? "R" : "");
    return text;
  }
  Lanes::DoneResult done(LaneId lane, BatchId batch) {
    return lanes.done(lane, batch, {}, {}, done_at(now));
  }
  Lanes::DoneResult done(LaneId lane) { return done(lane, last); }
  // Lets 60 s pass, in which every worker sends messages.
  void pass_bye_wait() {
    for (int second = 0; second < 60; ++second) {
      now += 1s;
      for (const auto& [lane, state] : lanes.lanes()) lanes.on_message(lane, now);
      lanes.expire(now);
    }
  }
  SortedEvents events() { return SortedEvents(std::exchange(lanes.events(), {})); }

  BatchId last{};
};

inline std::vector<std::uint64_t> numbers(const auto& ids) {
  std::vector<std::uint64_t> all;
  for (auto id : ids) all.push_back(number(id));
  return all;
}

}  // namespace millrace::test
