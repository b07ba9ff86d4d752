// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/answer.h"
#include "base/error_code.h"
#include "base/event.h"
#include "base/explanation.h"
#include "base/ids.h"
#include "base/instants.h"

namespace millrace {

// From a lane to a stream.
struct Returned {
  enum class What : std::uint8_t {
    taken,    // one of its rows was put into a batch
    done,     // its next row in order is done: seq, flags, reason, answer, at, place
    dropped,  // the lanes have dropped it with all its rows; `code` says why, if it failed
  };

  StreamId stream{};
  What what = What::taken;
  std::uint8_t flags = 0;                  // of the row, with those that its lane added
  ResetReason reason = ResetReason::none;  // of the row, as its lane has it
  std::uint64_t seq = 0;
  Answer answer{};
  Instants at{};  // up to `done`
  RowPlace place{};
  std::optional<ErrorCode> code{};
};

}  // namespace millrace
