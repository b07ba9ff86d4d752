// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "chunker/row.h"

namespace millrace {

// Rows of one stream that may be ready and in no batch.
inline constexpr std::size_t max_ready_rows = 8;

// A row that was cut and waits for a batch. Its frames stay where they are, in the stream's
// buffer, until the row is done.
struct ReadyRow {
  Row row;
  std::array<Bytes, 2> window;  // the window's frames; the second part is mostly empty
  Time arrived;                 // the last frame of its window, or the event that cut it, was read
  Time ready;                   // it was cut
  Duration lost{};              // in batches of workers that were lost
  bool notify_taken = true;     // its stream needs to know when it is in a batch (RowTaken)
  bool handed = false;          // it has been in a batch
  bool suspect = false;  // a worker was lost while this row was in its oldest unfinished batch
};

}  // namespace millrace
