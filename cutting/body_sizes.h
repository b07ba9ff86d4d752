// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/event.h"
#include "base/time.h"
#include "chunker/row.h"
#include "chunker/segment_progress.h"
#include "chunker/spec.h"
#include "cutting/adaptive_size.h"
#include "cutting/stats.h"

namespace millrace {

// The source of one stream's size events: chooses the size of each body when the body begins.
// Requires: the rule has sizes. Has no clock. Confined to one thread. Does not allocate.
class BodySizes {
 public:
  struct Stream {
    std::string_view name;                   // decides what is drawn; outlives this
    std::optional<std::uint32_t> requested;  // the size that the stream keeps
    Duration max_wait;                       // longest wait of a row for others in its batch
    double rate;                             // frames per second
  };

  // `chosen` is the size that a stream of the same pipeline and thread chose last (0: none). An
  // adaptive stream begins with it, or else with the smallest size, and updates it. `rule`, `stats`
  // and `chosen` outlive this.
  BodySizes(const ChunkRule& rule, const Stream& stream, CutStats& stats, std::uint32_t& chosen);

  // The size event that must enter the chunker before its next event; nullopt: none. `waited` is
  // how long the stream's rows wait for a worker.
  std::optional<Event> next(const SegmentProgress& progress, Duration waited);
  // A body begins: the chunker has cut a row with frames, or has begun a segment.
  void on_row(const Row& row) {
    begins_ = true;
    ++rows_;
    position_ = row.end();
  }
  void on_segment() { begins_ = true; }
  // The size of the bodies, of the first of a run the difference not counted.
  std::uint32_t size() const { return size_; }

 private:
  std::uint32_t choose(Duration waited);

  const ChunkRule& rule_;
  const Stream stream_;
  CutStats& stats_;
  std::uint32_t& chosen_;
  std::uint32_t size_;      // size of the bodies
  std::uint32_t in_force_;  // in the chunker
  std::optional<AdaptiveSize> adaptive_;
  std::uint64_t rows_ = 0;      // rows with frames
  std::uint64_t position_ = 0;  // end of the last of them
  bool begins_ = true;
};

}  // namespace millrace
