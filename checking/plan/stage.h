// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "batcher/batcher.h"
#include "checking/plan/checked_stream.h"
#include "checking/plan/draws.h"

namespace millrace::checking {

// A row of a checked stream in a batch of a stage.
struct PlannedRow {
  std::uint32_t stream = 0;  // index in the streams of the check
  std::uint32_t row = 0;     // number of the row in its stream
  std::uint32_t slot = 0;
  StreamId id{};           // the stream's id at the worker, another one after each move
  bool opens = false;      // the first row of this id
  std::uint32_t copy = 0;  // counts the copies of the stream in this stage
  bool leaves = false;     // the last row of this id, and no END row
};

struct PlannedBatch {
  std::uint32_t worker = 0;          // 0 or 1
  std::uint32_t rows = 0;            // those of the tensor, with padding rows; 0: marker rows only
  std::uint32_t width = 0;           // columns of the tensor
  bool fresh = false;                // the worker is started again before it
  bool alone = false;                // it is handed over when no worker holds a batch
  std::vector<PlannedRow> framed{};  // in the order of the tensor
  std::vector<PlannedRow> marks{};

  std::uint32_t padding() const { return rows - static_cast<std::uint32_t>(framed.size()); }
};

// A stage of a check: every row of every stream once, or of several copies of it that are streams
// of their own. Each stage differs from the first one by a condition that a worker must not depend
// on.
struct Stage {
  std::string_view name;     // for the table
  std::string_view finding;  // the meaning of a difference that begins here
  std::vector<PlannedBatch> batches;
};

// The number of copies of each stream: one more than the largest number of a copy.
std::uint32_t copies_of(const Stage& stage);

// The stages of a check. The rows of the first one are the expected answers:
//
// - alone: each run of a stream, from a RESET to the next one, as a stream of its own, in a slot
//   that was never used, one row per batch. A worker has a fresh slot once: if there are no more,
//   it is started again.
// - the same by the other worker, in the opposite order
// - each stream alone, in a slot that was used
// - with padding rows; left out if a batch has one row
// - with others, at drawn steps, numbers of rows and slots; with copies, so that batches become
// full
// - the same by two workers, with moves and padding rows
//
// Pure, and the same for the same arguments. `rule` must hold for every batch.
std::vector<Stage> make_stages(std::span<const CheckedStream> streams, const BatchRule& rule,
                               Draws& draws);

}  // namespace millrace::checking
