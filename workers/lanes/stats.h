// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/instants.h"
#include "base/stats.h"
#include "batcher/stats.h"
#include "gpu/host/stats.h"

namespace millrace {

// Why a worker was lost.
enum class WorkerFailure : std::uint8_t {
  disconnect,  // the connection ended; also after Bye, if the worker still had streams
  timeout,     // no heartbeat, an overdue answer, or no room for queued messages
  protocol,    // the worker sent an invalid message
};

// Why a listener for workers ended a connection before its Hello was accepted.
enum class WorkerRefusal : std::uint8_t {
  limit_global,  // the limit on TCP connections is reached
  handshake,     // no Hello in time, or a Hello that is not accepted
};

// One listener for workers. Written by the thread that accepts its connections.
struct WorkerServerStats {
  Labelled<Counter, WorkerRefusal> refused;
};

enum class ResultStatus : std::uint8_t {
  ok,
  error,  // the row failed
  late,   // ignored, because the batch was done already, or the row was not pending any more
};

enum class MessageStatus : std::uint8_t {
  ok,
  late,  // ignored, because the stream has no row at this worker any more
};

// Where the rows of a pipeline wait: values of the exporter's label `stage`.
enum class LaneQueue : std::uint8_t {
  batch,   // rows in no batch
  worker,  // rows that are handed over and not done
};

enum class SlotState : std::uint8_t { used, free };

// All lanes of one pipeline. Written by their home thread.
struct LaneStats {
  Gauge workers;
  Labelled<Gauge, SlotState> slots;  // a leaving worker has no free slots
  Labelled<Counter, WorkerFailure> failures;

  BatchStats batch;

  Histogram wait{buckets::fast};    // time for which a worker had no batch
  Histogram compute{buckets::e2e};  // from batch taken to batch done
  Gauge in_flight;                  // batches that are handed over and not done
  Gauge oldest;                     // to_wire(time at which the oldest of them closed); 0: none

  Gauge pending;  // rows whose answers follow later than their batch
  Labelled<Counter, ResultStatus> results;
  Labelled<Counter, MessageStatus> messages;  // messages of workers to clients
  SlabStats slabs;
  std::vector<CopyStats> copies;  // by Devices::usable()

  Counter watcher_misses;  // batches that were not sent to a watcher, because it was too slow

  Gauge received;                       // rows that streams added since the start
  Labelled<Gauge, LaneQueue> items;     // rows in the queue
  Labelled<Gauge, LaneQueue> capacity;  // most rows in the queue
};

}  // namespace millrace
