// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/answer.h"
#include "base/error_code.h"
#include "base/event.h"
#include "base/ids.h"
#include "base/instants.h"
#include "base/result_head.h"

namespace millrace {

// A row of a stream was put into a batch for the first time, and so were all rows before it. Sent
// only for rows with ReadyRow::notify_batched; the instants of every row come with its RowDone.
struct RowBatched {
  std::uint64_t seq = 0;
  Time closed;  // when its batch closed
};

// The next row of a stream, in order, is done.
struct RowDone {
  std::uint8_t flags = 0;                  // including those that its lane added
  ResetReason reason = ResetReason::none;  // as handed over: its lane may change it
  std::uint64_t seq = 0;
  Answer answer{};
  Instants at{};  // up to `done`
  RowInBatch in_batch{};
};

// A message of the worker for the client of a stream.
struct WorkerMessage {
  std::uint64_t seq = 0;  // number of the stream's newest row that the worker had
  Answer message{};       // json, text or bytes
};

// The lanes dropped a stream with all its rows.
struct StreamDropped {
  std::optional<ErrorCode> code;  // why it failed; nullopt if it aborted before a worker had a row
};

// A message from a lane to a stream.
struct Returned {
  StreamId stream{};
  std::variant<RowBatched, RowDone, WorkerMessage, StreamDropped> what;
};

}  // namespace millrace
