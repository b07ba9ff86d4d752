// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "batcher/batch.h"

namespace millrace {

// How the rows of a lane become batches.
struct BatchRule {
  std::uint32_t slots = 64;  // streams that the lane has room for; marker rows in a batch at most
  std::uint32_t rows = 16;   // rows with frames in a batch at most
  Duration max_wait{0};      // how long the oldest row may wait for others; 0: it never waits
  std::vector<std::uint32_t> row_buckets;  // lengths that the tensor may have, ascending, the last
                                           // is `rows`; empty: any length
  bool stateful = true;                    // at most one row with frames per stream in a batch
};

// The rows of one lane: which stream has which slot, which rows wait, and which of them make the
// next batch. Pure: the time comes in as `now` and nothing is called back. It knows nothing of
// credits or slabs: who has both asks trigger() and closes.
//
// Order: oldest first, where a row's age counts from when it was ready and the row before it of
// its stream was taken, so a backlog of one stream cannot delay another. Of a stream, rows come
// in order, at most one with frames in a batch, marker rows only behind it.
//
// Confined to one thread. No allocation per row once its vectors have grown.
class Batcher {
 public:
  explicit Batcher(BatchRule rule);

  // Gives a stream the lowest free slot; nothing when all are taken.
  std::optional<Slot> open(StreamId stream);

  // A row is ready; `now` is its age's begin if it was ready earlier than the row before it was
  // taken. Requires: the stream has the slot, and row.seq follows the one before.
  void add(Slot slot, ReadyRow row, Time now);

  // Why a batch would close now; nothing while there is no row or it is worth waiting.
  std::optional<Trigger> trigger(Time now) const;

  // When trigger() answers `deadline` if nothing happens before; Time::max() without rows.
  Time deadline() const;

  // Moves the rows of the next batch into `batch` (whose vectors are reused). The id is the
  // caller's. Requires: trigger(now) gave `why`.
  void close(Trigger why, Time now, Batch& batch);

  // A row of this stream will not come: takes back its rows that are in no batch, in order, and
  // frees its slot.
  std::vector<ReadyRow> remove(Slot slot);

  // Nothing more is to come: what waits closes at once, as `drain`.
  void drain();

  std::uint32_t streams() const;  // that have a slot
  std::uint32_t room() const;     // free slots
  std::size_t waiting() const;    // rows in no batch
  std::size_t waiting(Slot slot) const;
};

}  // namespace millrace
