// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "base/trigger.h"
#include "chunker/ready_row.h"

namespace millrace {

// A row in a batch.
struct BatchRow {
  StreamId stream;
  Slot slot;
  ReadyRow ready;
};

// Rows of one lane that the model processes in one step. `framed` are the dense rows 0 <= row < n
// of the tensor. Padding rows follow up to `rows`. `marks` come after them in the control arrays
// and are not in the tensor. A batch is reused, so that a row needs no allocation.
struct Batch {
  BatchId id{};
  Trigger trigger = Trigger::full;
  std::uint32_t rows = 0;   // rows of the tensor with padding; 0: marker rows only, no tensor
  std::uint32_t width = 0;  // columns of the tensor; without a tensor the narrowest bucket
  std::vector<BatchRow> framed;
  std::vector<BatchRow> marks;
  Time closed;

  // True if the batch holds one suspect and no other row with frames.
  bool is_trial() const {
    const std::vector<BatchRow>& first = framed.empty() ? marks : framed;
    return !first.empty() && first.front().ready.suspect;
  }
};

}  // namespace millrace
