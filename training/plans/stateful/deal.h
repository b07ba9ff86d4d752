// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "training/contract/plan.h"
#include "training/plans/order/epoch_streams.h"
#include "training/plans/rows/stream_cutter.h"

namespace millrace::training {

// The streams of one epoch, distributed to slots. Eight bytes per stream.
//
//   1. The streams are ordered by length class, longest first, in random order within a class. The
//      lengths of a class differ by at most 10 %. Without shuffling: by length alone.
//   2. In this order, each stream goes to the slot with the shortest total length so far. With
//      shuffling, streams are then exchanged between long and short slots (balance.h).
//   3. The order of the streams in each slot is shuffled. Without shuffling: as in the catalog.
//
// Streams without a row with frames are left out. Immutable after construction, and thread-safe.
class Deal {
 public:
  struct Settings {
    std::uint32_t slots = 1;
    bool shuffle = true;
    std::uint64_t key = 0;  // for all that is random
  };

  // All are used by the constructor only.
  Deal(const EpochStreams& streams, const StreamCutter& cutter, const Settings& settings,
       const Poll& poll = {});

  std::uint32_t slots() const { return static_cast<std::uint32_t>(begins_.size() - 1); }
  // The steps of the slot with the most.
  std::uint64_t steps() const { return steps_; }
  PlanTotals totals() const;

  // The streams of a slot are [begin(slot), begin(slot + 1)).
  std::size_t begin(std::uint32_t slot) const { return begins_[slot]; }
  // The place of a stream in EpochStreams.
  std::uint64_t place(std::size_t stream) const { return places_[stream]; }

  // The stream of a slot at a step, and the step in this stream. nullopt: the slot has ended.
  struct Position {
    std::size_t stream = 0;
    std::uint64_t step = 0;
  };
  std::optional<Position> at(std::uint32_t slot, std::uint64_t step) const;

 private:
  struct Lengths;

  void fill(const Lengths& lengths, const std::vector<std::uint32_t>& slot_of);
  void shuffle(std::uint64_t key);
  void sum(const Lengths& lengths);

  std::vector<std::size_t> begins_;     // first stream of each slot, and an end
  std::vector<std::uint32_t> places_;   // slot by slot
  std::vector<std::uint32_t> lengths_;  // steps of the same streams
  std::vector<std::uint64_t> sums_;     // steps before every 64th stream
  std::vector<std::uint64_t> slot_steps_;
  std::uint64_t steps_ = 0;
  std::uint64_t rows_ = 0, frames_ = 0;
};

}  // namespace millrace::training
