// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/answer.h"
#include "base/error_code.h"
#include "base/event.h"
#include "base/explanation.h"
#include "base/ids.h"
#include "base/instants.h"

namespace millrace {

// A row of a stream is in its first batch, and so are the rows before it. Sent for rows with
// ReadyRow::notify_taken only: the instants of every row come with its RowDone.
struct RowTaken {
  std::uint64_t seq = 0;
  Time closed;  // its batch
};

// The next row of a stream, in order, is done.
struct RowDone {
  std::uint8_t flags = 0;                  // with those that its lane added
  ResetReason reason = ResetReason::none;  // as its lane has it
  std::uint64_t seq = 0;
  Answer answer{};
  Instants at{};  // up to `done`
  RowPlace place{};
};

// The lanes have dropped a stream with all its rows.
struct StreamDropped {
  std::optional<ErrorCode> code;  // why it failed; nullopt: it aborted before a worker had a row
};

// From a lane to a stream.
struct Returned {
  StreamId stream{};
  std::variant<RowTaken, RowDone, StreamDropped> what;
};

}  // namespace millrace
