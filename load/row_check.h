// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "base/ids.h"
#include "base/time.h"
#include "chunker/spec.h"
#include "load/streams/outcome.h"
#include "load/streams/stream_place.h"
#include "schemas/worker_messages.h"

namespace millrace::load {

// Looks at every row that the service hands over: whether it is the one that the pipeline's rule
// wants next of its stream, holds what was sent, and how long after it was due. Streams are known
// by their names.
//
// Has no clock: when a row was taken is passed in. Confined to one thread.
class RowCheck {
 public:
  // The pipeline's rule, and the type of its tensors. `run` outlives it.
  RowCheck(const RunFacts& run, const ChunkRule& rule, const FrameType& type);

  // The first row of the stream will come.
  void open(StreamId stream, std::string_view name);
  void look_at(const worker_protocol::RowEntry& row, Bytes values, Time taken);
  void look_at_mark(const worker_protocol::RowEntry& row, Time taken);
  // What our worker says to it; "null" to a row that is none of this run's.
  void answer(const worker_protocol::RowEntry& row, std::string& out) const;

  WorkerOutcome& outcome() { return outcome_; }

 private:
  struct Known {
    StreamPlace begin;
    std::uint64_t expected = 0;  // where its next row begins
    std::uint64_t seq = 0;       // the least that it may have
    bool over = false;           // by END or ABORT: what comes now is one too many
  };

  bool is_as_sent(const StreamPlace& stream, const worker_protocol::RowEntry& row,
                  Bytes values) const;
  void pass(Known& known, const worker_protocol::RowEntry& row, std::uint64_t expected);
  void time(const Known& known, std::uint64_t end, Time taken);
  void note_burst(std::uint64_t packet, Time taken);

  const RunFacts& run_;
  const ChunkRule rule_;
  const FrameType type_;
  std::unordered_map<StreamId, Known> streams_;  // that are the benchmark's
  WorkerOutcome outcome_;
};

}  // namespace millrace::load
