// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "base/ids.h"
#include "base/time.h"
#include "chunker/spec.h"
#include "load/streams/load_stream_id.h"
#include "load/streams/outcome.h"
#include "schemas/worker_messages.h"

namespace millrace::load {

// Checks every row that the service hands over: it must be the next one of its stream by the
// pipeline's chunk rule, and have the sent values. Measures how long after its due time it was
// taken. Identifies streams by their names (stream_name()). If the rule has sizes, each body may
// have any of them, and the batch any width that holds the row.
//
// Has no clock: the time when a row was taken is passed in. Confined to one thread.
class RowCheck {
 public:
  // The pipeline's rule, and the type of its tensors. `run` must outlive this object.
  RowCheck(const RunFacts& run, const ChunkRule& rule, const FrameType& type);

  // A stream whose first row follows. If it has the name of an earlier one, the service has opened
  // that anew: its rows continue at the same place, or at an earlier one. Where the protocol has no
  // names of streams, the name is one of the strings in the options. Ignores names that are not of
  // this run.
  void open(StreamId stream, std::string_view name, std::string_view options = {});
  // A row with frames; `values` is its part of the tensor.
  void check(const worker_protocol::RowEntry& row, Bytes values, Time taken);
  void check_mark(const worker_protocol::RowEntry& row, Time taken);
  // Writes the own worker's answer to a row; "null" for a row of a stream of another run.
  void answer(const worker_protocol::RowEntry& row, std::string& out) const;

  WorkerOutcome& outcome() { return outcome_; }

 private:
  struct CheckedStream {
    LoadStreamId id;
    std::uint64_t expected = 0;  // position of the next row
    std::uint64_t seq = 0;       // least number of the next row
    bool over = false;           // after END or ABORT: no row may follow
    bool anew = false;           // the first row may repeat earlier ones
  };

  bool is_as_sent(const LoadStreamId& stream, const worker_protocol::RowEntry& row,
                  Bytes values) const;
  void accept(CheckedStream& stream, const worker_protocol::RowEntry& row, std::uint64_t expected);
  void record_time(const CheckedStream& stream, std::uint64_t end, Time taken);
  void record_burst(std::uint64_t packet, Time taken);

  const RunFacts& run_;
  const ChunkRule rule_;
  const FrameType type_;
  std::unordered_map<StreamId, CheckedStream> streams_;  // streams of this run
  std::map<LoadStreamId, StreamId> newest_;              // with this name
  WorkerOutcome outcome_;
};

}  // namespace millrace::load
