// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/event.h"
#include "base/time.h"
#include "chunker/row.h"
#include "chunker/spec.h"
#include "cutting/adaptive_size.h"
#include "cutting/decisions.h"

namespace millrace {

// The source of one stream's size events: chooses the size of each body when the body begins.
// Requires: the rule has sizes. Has no clock. Confined to one thread. Does not allocate.
class BodySizes {
 public:
  // `rule` outlives this.
  BodySizes(const ChunkRule& rule, const Decisions& stream);

  // The size event that must enter the chunker before its next event; nullopt: none.
  // `first_of_run`: the next body is. `waited` is how long the stream's rows wait for a worker.
  std::optional<Event> next(bool first_of_run, Duration waited);
  // The stream begins at this position.
  void on_open(std::uint64_t position) { first_ = position; }
  // A body begins: the chunker has cut a row with frames, or has begun a segment.
  void on_row(const Row& row) {
    begins_ = true;
    ++rows_;
    position_ = row.end() - first_;
  }
  void on_segment() { begins_ = true; }
  // The size of the bodies, of the first of a run the difference not counted.
  std::uint32_t size() const { return size_; }

 private:
  struct Fixed {};

  std::uint32_t choose(Duration waited);

  const ChunkRule& rule_;
  CutStats* const stats_;
  std::uint32_t* const chosen_;
  std::variant<Fixed, AdaptiveSize, SizeDraws> choice_;
  Cause cause_ = Cause::client;
  bool begins_ = true;
  std::uint32_t size_;          // size of the bodies
  std::uint32_t in_force_;      // in the chunker
  std::uint64_t first_ = 0;     // the position at which the stream begins
  std::uint64_t rows_ = 0;      // rows with frames
  std::uint64_t position_ = 0;  // end of the last of them, counted from first_
};

}  // namespace millrace
