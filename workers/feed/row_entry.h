// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "chunker/row.h"
#include "gpu/host/batch_writer.h"
#include "schemas/worker_messages.h"

namespace millrace {

// A row of a batch as it is in the message to a worker, and in the control arrays.

inline worker_protocol::RowEntry entry_of(StreamId stream, std::uint32_t slot, const Row& row) {
  return {.stream = stream,
          .seq = row.seq,
          .begin = row.begin,
          .gap = row.gap,
          .mark = row.mark ? static_cast<std::int64_t>(*row.mark) : -1,
          .slot = slot,
          .left = row.left,
          .size = row.size,
          .right = row.right,
          .flags = row.flags,
          .reason = static_cast<std::uint8_t>(row.reason)};
}

inline RowControl control_of(std::uint32_t slot, const Row& row) {
  return {slot, row.left, row.size, row.right, row.flags, row.is(flag::reset)};
}

}  // namespace millrace
