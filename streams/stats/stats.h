// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/instants.h"
#include "base/stats.h"
#include "cutting/stats.h"

namespace millrace {

// Why a stream was closed.
enum class StreamClosing : std::uint8_t {
  end,          // ended by the client; it has all its results
  idle,         // the client was silent for too long
  client_gone,  // its connection was lost
  error,        // it could not continue
  no_worker,    // no worker had a free slot in time
  drain,        // the service is stopping
};

// Why frames never became part of a row.
enum class Loss : std::uint8_t {
  gap,       // reported by the client
  overflow,  // shed under load
  rejected,  // in a message that was rejected
};

// The state of a stream that its client has continued over a new connection.
enum class ResumedState : std::uint8_t {
  kept,
  lost,  // the stream was opened anew
};

// Why a result was not delivered.
enum class ResultLoss : std::uint8_t { slow_reader, stream_closed };

// The streams of one pipeline on one io thread. Written by that thread.
struct StreamStats : CutStats {
  Gauge open;
  Gauge detached;  // open streams that wait for a connection
  Counter opened;
  Labelled<Counter, ResumedState> resumed;
  Labelled<Counter, StreamClosing> closed;
  Histogram duration{buckets::life};  // lifetime of a stream, observed at its end

  Counter frames;                // accepted frames, in frames of the pipeline
  Counter clamped;               // values outside the pipeline's range
  Labelled<Counter, Loss> lost;  // lost frames
  Gauge buffer;                  // bytes in the streams' frame buffers

  // Stage `result` counts rows with a written result, the other stages all rows that are done.
  std::array<Histogram, stage_count> stages{Histogram(buckets::fast), Histogram(buckets::fast),
                                            Histogram(buckets::fast), Histogram(buckets::fast),
                                            Histogram(buckets::fast), Histogram(buckets::fast)};
  Histogram latency{buckets::e2e};  // `arrived` to `written`
  Counter answered;                 // rows that are done with a result
  Gauge results;                    // results that wait to be written
  Labelled<Counter, ResultLoss> dropped;

  // Counts a row that is done, answered or not.
  void done(const Instants& at) {
    const auto spans = millrace::stages(at);
    for (std::size_t i = 0; i < spans.size() - 1; ++i) stages[i].observe(spans[i]);
  }
  // Counts a written result.
  void written(const Instants& at) {
    stages.back().observe(at.written - at.done);
    latency.observe(at.written - at.arrived);
  }
};

}  // namespace millrace
