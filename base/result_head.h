// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

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

// The position of a result in its stream, in frames of the pipeline.
struct ResultHead {
  std::uint64_t seq = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  double rate = 16000;     // frames per second
  std::uint8_t flags = 0;  // bit i is the i-th of START RESET SEGMENT GAP LAST END ABORT
  std::optional<Explanation> explanation{};
};

// The end of a segment: its LAST row, which was cut.
struct SegmentEnd {
  std::uint64_t seq = 0;                // number of the row
  std::uint64_t position = 0;           // the number of frames of the pipeline that complete it
  double rate = 16000;                  // frames per second
  std::optional<std::uint64_t> mark{};  // mark of the flush that ended the segment
  bool by_endpoint = false;             // an endpoint ended the segment
};

// The place of a message of a worker among those to its client.
struct MessageHead {
  std::uint64_t number = 0;  // counts the messages of the stream, from 0
  std::uint64_t seq = 0;     // number of the newest row that the worker had
};

}  // namespace millrace
