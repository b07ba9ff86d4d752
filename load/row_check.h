// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "base/ids.h"
#include "base/time.h"
#include "load/outcome.h"
#include "load/stream_place.h"
#include "schemas/worker_messages.h"

namespace millrace::load {

// Looks at every row that the service hands over: whether it is the one that comes next in its
// stream, holds what was sent, and how long after it was due. Streams are known by their names.
//
// Has no clock: when a row was taken is passed in. Confined to one thread.
class RowCheck {
 public:
  // Windows of `width` frames are compared value by value, as `dtype`. `run` outlives it.
  RowCheck(const RunFacts& run, std::uint32_t width, Element dtype);

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
    bool over = false;           // by END or ABORT: what comes now is one too many
  };
  // The packets of a step, where all streams send at once.
  struct Burst {
    std::uint64_t packet = 0;
    Time due{}, last{};
  };

  void time(const Known& known, std::uint64_t end, Time taken);
  void note_burst(std::uint64_t packet, Time taken);

  const RunFacts& run_;
  const std::uint32_t width_;
  const Element dtype_;
  std::unordered_map<StreamId, Known> streams_;  // that are the benchmark's
  Burst burst_;
  WorkerOutcome outcome_;
};

}  // namespace millrace::load
