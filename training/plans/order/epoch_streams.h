// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "training/contract/catalog.h"
#include "training/contract/plan_options.h"
#include "training/contract/poll.h"
#include "training/plans/order/windowed_permutation.h"

namespace millrace::training {

// The streams of one epoch. A stream may come several times, or not at all: part k of the catalog
// gives the next n * f streams of an endless sequence of permutations of its n streams, where f is
// the frequency of the part. The places 0 … size() - 1 are in the order of the catalog's parts; a
// part that comes once is in the order of the catalog.
//
// Immutable after construction, and thread-safe. The catalog must outlive it.
class EpochStreams {
 public:
  // Asks options.frames for the length of each stream, if it is set.
  EpochStreams(const Catalog& catalog, const PlanOptions& options, std::uint64_t epoch,
               const Poll& poll = {});

  std::uint64_t size() const { return parts_.back().begin; }
  std::uint64_t stream(std::uint64_t place) const { return is_plain_ ? place : stream_of(place); }
  // The length in this epoch.
  std::uint64_t frames(std::uint64_t place) const {
    return lengths_.empty() ? catalog_.frames(stream(place)) : lengths_[place];
  }
  // How often the stream comes at earlier places. Streams of parts that come several times per
  // epoch are numbered so.
  std::uint32_t copy(std::uint64_t place) const { return is_plain_ ? 0 : copy_of(place); }
  // True if the events of the catalog are those of the stream in this epoch.
  bool has_events(std::uint64_t place) const;

 private:
  struct Part {
    std::uint64_t begin = 0;    // place of its first stream
    std::uint64_t streams = 0;  // begin of its streams in the catalog, and their number
    std::uint64_t count = 0;
    std::uint64_t from = 0;  // index in the endless sequence
    bool once = true;        // it comes once per epoch
  };

  const Part& part_of(std::uint64_t place) const;
  std::uint64_t stream_of(std::uint64_t place) const;
  std::uint32_t copy_of(std::uint64_t place) const;
  WindowedPermutation round_of(const Part& part, std::uint64_t round) const;

  const Catalog& catalog_;
  Shuffle shuffle_;
  std::uint64_t seed_;
  std::vector<Part> parts_;  // and an end
  bool is_plain_ = true;     // each stream comes once
  std::vector<std::uint64_t> lengths_;
};

}  // namespace millrace::training
