// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "checking/plan/stage.h"

namespace millrace::checking {

// Draws the batches of a stage in which streams share batches: when each stream begins, which of
// them are in a batch, in which order, in which slots, and beside how many padding rows. With two
// workers, a stream moves to the other one where it has RESET(worker_lost). Streams come again, as
// copies, so that there are enough for full batches in slots that were used.
//
// Confined to one thread.
class Together {
 public:
  // `next_id` is the id of the next stream.
  Together(std::span<const CheckedStream> streams, const BatchRule& rule, bool moves_and_padding,
           std::uint64_t& next_id, Draws& draws);

  std::vector<PlannedBatch> batches();

 private:
  // A stream that has a slot.
  struct Active {
    std::uint32_t stream = 0, row = 0, worker = 0, slot = 0;
    StreamId id{};
    bool opens = true;
    bool moved = false;  // for its next row
    std::uint32_t copy = 0;
  };
  struct Waiting {
    std::uint32_t stream = 0, copy = 0;
  };

  void admit();
  // The next stream that waits begins at this worker; false: it has no slot.
  bool admit_at(std::uint32_t worker);
  // Adds rows to the batch up to this number.
  PlannedBatch batch_of(std::uint32_t worker, std::uint64_t most);
  bool move(Active& stream);
  // Adds the next rows of the stream that may be in this batch.
  void take(Active& stream, PlannedBatch& batch);
  std::optional<std::uint32_t> take_slot(std::uint32_t worker);
  const CheckedRow& next_of(const Active& stream) const {
    return streams_[stream.stream].rows()[stream.row];
  }

  const std::span<const CheckedStream> streams_;
  const BatchRule& rule_;
  const bool moves_and_padding_;
  std::uint64_t& next_id_;
  Draws& draws_;
  std::array<std::set<std::uint32_t>, 2> free_;  // slots, by worker
  std::vector<Waiting> waiting_;
  std::vector<Active> active_;
};

// The rows of the tensor for a batch: the least number that the rule allows, or with padding rows a
// larger one, if there is one.
std::uint32_t tensor_rows(const BatchRule& rule, std::uint32_t framed, bool padding, Draws& draws);

}  // namespace millrace::checking
