// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "chunker/row.h"
#include "training/contract/poll.h"

namespace millrace::training {

// A row in a batch of a plan.
struct PlannedRow {
  std::uint64_t stream = 0;  // number in the catalog
  std::uint64_t frame = 0;   // frames before its body, without those that gaps skipped
  std::uint32_t slot = 0;    // counted in this rank
  std::uint32_t copy = 0;    // copies of the stream before this one in the epoch
  bool opens = false;  // the reader of the batches has seen no row of this stream and slot yet
  Row row;
};

// A batch of a plan: one step of one rank. Padding rows follow `framed`, up to `rows`. A batch is
// reused, so that a row needs no allocation.
struct PlannedBatch {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;   // in the epoch
  std::uint32_t rows = 0;   // all rows of the tensor, with padding rows
  std::uint32_t width = 0;  // columns of the tensor
  std::uint32_t body = 0;   // most frames of a body with this width
  std::vector<PlannedRow> framed;
  std::vector<PlannedRow> marks;
};

// A rank of a world of ranks, each of which gets its part of every step. rank < world.
struct Rank {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  bool operator==(const Rank&) const = default;
};

// Reads the batches of one rank from an EpochPlan, which must outlive it. Confined to one thread.
class PlanCursor {
 public:
  virtual ~PlanCursor() = default;
  // Writes the next batch. False at the end of the epoch.
  virtual bool next(PlannedBatch& into) = 0;
};

// Frames of the batches of an epoch, for all ranks together.
struct PlanTotals {
  std::uint64_t rows = 0;  // with frames
  std::uint64_t padding_rows = 0;
  std::uint64_t frames = 0;  // bodies of the rows with frames
};

// The batches of one epoch, for every rank. Immutable after construction, and thread-safe.
class EpochPlan {
 public:
  virtual ~EpochPlan() = default;
  // The steps of the epoch, for each rank.
  virtual std::uint64_t steps() const = 0;
  virtual PlanTotals totals() const = 0;
  // The batches of `rank` from `step` on, every `stride`-th. Requires: stride >= 1.
  virtual std::unique_ptr<PlanCursor> cursor(Rank rank, std::uint64_t step,
                                             std::uint64_t stride) const = 0;
  // The most marker rows after one row of a stream.
  virtual std::uint64_t most_marks(std::uint64_t) const { return 0; }
};

// An epoch has no step, for this number of ranks.
class EmptyEpoch : public std::invalid_argument {
 public:
  EmptyEpoch(std::uint64_t epoch, const std::string& why)
      : std::invalid_argument("epoch " + std::to_string(epoch) + " has no step: " + why) {}
};

// Which row of which stream is in which batch, from (seed, epoch, step) alone. Pure: no thread, no
// file, no clock. Immutable and thread-safe.
class Plan {
 public:
  virtual ~Plan() = default;
  // Distributes the streams of an epoch. May be called on any thread. Throws EmptyEpoch, and what
  // `poll` throws.
  virtual std::unique_ptr<EpochPlan> epoch(std::uint64_t epoch, const Poll& poll = {}) const = 0;
  // Slots of one rank: the number of states that its model keeps. 0: stateless.
  virtual std::uint32_t slots(Rank rank) const = 0;
  // The most rows of a batch of one rank, and the most columns.
  virtual std::uint32_t most_rows(Rank rank) const = 0;
  virtual std::uint32_t most_columns() const = 0;
  // The most frames of a body.
  virtual std::uint32_t most_body() const = 0;
  // The most rows x columns of a batch. Less than the product of the above if a plan has wide
  // batches of few rows, and narrow ones of many.
  virtual std::uint64_t most_padded_frames(Rank rank) const {
    return std::uint64_t{most_rows(rank)} * most_columns();
  }
};

}  // namespace millrace::training
