// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/instants.h"
#include "base/trigger.h"

namespace millrace {

// The batch in which a row was done: the values that its client may see.
struct RowInBatch {
  BatchId batch{};
  Slot slot{};
  std::uint32_t rows = 0;  // rows with frames in the batch
  Trigger trigger = Trigger::full;
};

// The times of a row in each stage, for a client that requested them with `explain=1`.
struct Explanation {
  RowInBatch in_batch;
  Instants at;  // up to `done`
};

}  // namespace millrace
