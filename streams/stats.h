// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/event.h"
#include "base/instants.h"
#include "base/stats.h"

namespace millrace {

enum class StreamClosing : std::uint8_t {
  end,          // the client ended it, and has all its results
  idle,         // nothing was heard of it for too long
  client_gone,  // its connection was lost
  error,        // it could not go on
  no_worker,    // no worker came in time
  drain,        // the service is stopping
};

// Why frames never became part of a row.
enum class Loss : std::uint8_t {
  gap,       // the client says it lost them
  overflow,  // shed under load
  rejected,  // in a message that was refused
};

enum class RowKind : std::uint8_t {
  full,    // a body as long as the rule asks
  cut,     // shorter: at the end of a segment
  marker,  // without frames
};

// Why a client never saw a result.
enum class ResultLoss : std::uint8_t { slow_reader, stream_closed };

// The streams of one pipeline on one io thread. That thread writes it.
struct StreamStats {
  Gauge open;
  Counter opened;
  Labelled<Counter, StreamClosing> closed;
  Histogram duration{buckets::life};  // of a stream, at its close

  Counter frames;                // accepted, in frames of the pipeline
  Counter clamped;               // values that were beyond the pipeline's range
  Labelled<Counter, Loss> lost;  // frames
  Gauge buffer;                  // bytes that the streams' frame buffers hold
  Labelled<Counter, RowKind> rows;
  Labelled<Counter, ResetReason> resets;  // rows with RESET; never `none`

  // `result` of rows with a written result, the others of all rows that are done.
  std::array<Histogram, stage_count> stages{Histogram(buckets::fast), Histogram(buckets::fast),
                                            Histogram(buckets::fast), Histogram(buckets::fast),
                                            Histogram(buckets::fast), Histogram(buckets::fast)};
  Histogram latency{buckets::e2e};  // `arrived` to `written`
  Counter answered;                 // rows that are done and have a result
  Gauge results;                    // of these, those that wait to be written
  Labelled<Counter, ResultLoss> dropped;

  // A row is done, answered or not.
  void done(const Instants& at) {
    const auto spans = millrace::stages(at);
    for (std::size_t i = 0; i < spans.size() - 1; ++i) stages[i].observe(spans[i]);
  }
  // Its result was written.
  void written(const Instants& at) {
    stages.back().observe(at.written - at.done);
    latency.observe(at.written - at.arrived);
  }
};

}  // namespace millrace
