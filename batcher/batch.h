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

// Rows of one lane that the model processes in one step. `framed` are dense rows 0 <= row < n of
// the tensor; padding rows, if any, follow up to `rows`; `marks` stand behind them in the control
// arrays and have no place in the tensor. Reused from batch to batch, so that a row costs no
// allocation.
struct Batch {
  BatchId id{};
  Trigger trigger = Trigger::full;
  std::uint32_t rows = 0;  // of the tensor, padding rows included; 0: marker rows alone, no tensor
  std::vector<BatchRow> framed;
  std::vector<BatchRow> marks;
  Time closed;

  // Whether it holds a suspect, alone.
  bool is_trial() const {
    const std::vector<BatchRow>& first = framed.empty() ? marks : framed;
    return !first.empty() && first.front().ready.suspect;
  }
};

}  // namespace millrace
