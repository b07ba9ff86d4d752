// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "chunker/row.h"

namespace millrace::training {

// A row of a stream of a catalog.
struct CutRow {
  Row row;
  std::uint64_t frame = 0;  // frames before its body, without those that gaps skipped
};

// A stream of a catalog in one epoch.
struct StreamRef {
  std::uint64_t stream = 0;  // number in the catalog
  std::uint64_t frames = 0;  // length in this epoch
  bool events = false;       // it has the inner events of the catalog
  std::uint32_t copy = 0;    // copies of the stream before this one in the epoch
};

}  // namespace millrace::training
