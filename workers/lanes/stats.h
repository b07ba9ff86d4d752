// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/instants.h"
#include "base/stats.h"
#include "batcher/stats.h"
#include "gpu/host/stats.h"

namespace millrace {

// Why a worker was evicted.
enum class WorkerFailure : std::uint8_t {
  disconnect,  // it hung up, also after a Bye, while it had streams
  timeout,     // no heartbeat, an answer that did not come, or no room for what waits
  protocol,    // what it sent is not the protocol
};

// Why a connection to a listener for workers was ended before its Hello was accepted.
enum class WorkerRefusal : std::uint8_t {
  limit_global,  // as many TCP connections as there may be
  handshake,     // no Hello in time, or one that is not accepted
};

// One listener for workers. The thread that accepts its connections writes it.
struct WorkerServerStats {
  Labelled<Counter, WorkerRefusal> refused;
};

enum class ResultStatus : std::uint8_t {
  ok,
  error,  // the row failed
  late,   // of a batch that was done already; ignored
};

// Where rows wait for the lanes: part of what the exporter calls a stage.
enum class LaneQueue : std::uint8_t {
  batch,   // in no batch yet
  worker,  // handed over and not done
};

enum class SlotState : std::uint8_t { used, free };

// All lanes of one pipeline. Their home thread writes it.
struct LaneStats {
  Gauge workers;
  Labelled<Gauge, SlotState> slots;  // a worker that leaves has no free ones
  Labelled<Counter, WorkerFailure> failures;

  BatchStats batch;

  Histogram wait{buckets::fast};    // of a worker without a batch for its next one
  Histogram compute{buckets::e2e};  // batch taken to batch done
  Gauge in_flight;                  // batches handed over and not done
  Gauge oldest;                     // to_wire(its hand-over) of the oldest of them; 0: none

  Labelled<Counter, ResultStatus> results;
  SlabStats slabs;
  std::vector<CopyStats> copies;  // by Devices::usable()

  Counter unwatched;  // copies of batches that a watcher was too slow for

  Gauge received;                       // rows that came from their streams, ever
  Labelled<Gauge, LaneQueue> items;     // of these, rows in the queue
  Labelled<Gauge, LaneQueue> capacity;  // rows that it may hold
};

}  // namespace millrace
