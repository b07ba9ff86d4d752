// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/instants.h"
#include "base/stats.h"
#include "batcher/stats.h"
#include "gpu/stats.h"

namespace millrace {

// Why a worker was evicted.
enum class WorkerFailure : std::uint8_t {
  disconnect,  // it hung up, also after a Bye, while it had streams
  timeout,     // no heartbeat, an answer that did not come, or no room for what waits
  protocol,    // what it sent is not the protocol
};
inline constexpr int worker_failures = 3;

constexpr std::string_view name_of(WorkerFailure reason) {
  constexpr std::string_view names[worker_failures] = {"disconnect", "timeout", "protocol"};
  return names[static_cast<int>(reason)];
}

enum class ResultStatus : std::uint8_t {
  ok,
  error,  // the row failed
  late,   // of a batch that was done already; ignored
};
inline constexpr int result_statuses = 3;

constexpr std::string_view name_of(ResultStatus status) {
  constexpr std::string_view names[result_statuses] = {"ok", "error", "late"};
  return names[static_cast<int>(status)];
}

// Where rows wait for the lanes: part of what the exporter calls a stage.
enum class LaneQueue : std::uint8_t {
  batch,   // in no batch yet
  worker,  // handed over and not done
};
inline constexpr int lane_queues = 2;

constexpr std::string_view name_of(LaneQueue queue) {
  return queue == LaneQueue::batch ? "batch" : "worker";
}

enum class SlotState : std::uint8_t { used, free };
inline constexpr int slot_states = 2;

constexpr std::string_view name_of(SlotState state) {
  return state == SlotState::used ? "used" : "free";
}

// All lanes of one pipeline. Their home thread writes it.
struct LaneStats {
  Gauge workers;
  Labelled<Gauge, SlotState, slot_states> slots;  // a worker that leaves has no free ones
  Labelled<Counter, WorkerFailure, worker_failures> failures;

  BatchStats batch;

  Histogram wait{buckets::fast};    // of a worker without a batch for its next one
  Histogram compute{buckets::e2e};  // batch taken to batch done
  Gauge in_flight;                  // batches handed over and not done
  Gauge oldest;                     // to_wire(its hand-over) of the oldest of them; 0: none

  Labelled<Counter, ResultStatus, result_statuses> results;
  SlabStats slabs;
  std::vector<CopyStats> copies;  // by Devices::usable()

  Counter unwatched;  // copies of batches that a watcher was too slow for

  Gauge received;                                    // rows that came from their streams, ever
  Labelled<Gauge, LaneQueue, lane_queues> items;     // of these, rows in the queue
  Labelled<Gauge, LaneQueue, lane_queues> capacity;  // rows that it may hold
};

}  // namespace millrace
